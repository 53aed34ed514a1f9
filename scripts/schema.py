"""Write the SQL of the first migration from `stores/sql/tables.py`. Only until the first release: from then on it is frozen,
and what changes is a migration after it."""

from sqlalchemy import Dialect, make_url
from sqlalchemy.schema import CreateIndex, CreateTable, DDLElement

from postern.stores.sql.schema import MIGRATIONS
from postern.stores.sql.tables import for_migrations


def sql(dialect: Dialect) -> str:
    made: list[DDLElement] = []
    for table in for_migrations().tables.values():
        indexes = sorted(table.indexes, key=lambda index: str(index.name))  # the set has no order of its own
        made += [CreateTable(table), *(CreateIndex(index) for index in indexes)]
    lines = (
        str(one.compile(dialect=dialect)).replace(" \n", "\n").replace("\t", "  ").strip() for one in made
    )
    return ";\n\n".join(lines) + ";\n"


if __name__ == "__main__":
    for url in ("sqlite://", "postgresql+psycopg://"):
        dialect = make_url(url).get_dialect()()
        (MIGRATIONS / "versions" / f"0010_first_tables.{dialect.name}.sql").write_text(sql(dialect))
