"""`postern schema`"""

import click

from postern.surfaces.cli.run import show_json


@click.command()
def schema() -> None:
    """Print the JSON Schema of the file that `apply` takes. An editor that knows it completes and checks the file
    while you write.

    Example:

      postern schema > webhooks.schema.json
    """
    from postern.usecases.webhooks.file.schema import schema as of_the_file

    show_json(of_the_file())
