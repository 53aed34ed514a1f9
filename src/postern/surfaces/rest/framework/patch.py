"""The schema of a merge patch, made from the schema of the whole: nothing is required, and null goes back to
the default."""

from postern.usecases.answers import Schema


def patch_schema(whole: Schema, shapes: dict[str, Schema]) -> Schema:
    """``shapes`` are the schemas that the whole one refers to."""
    whole = _followed(whole, shapes)
    if "oneOf" in whole:
        # Without its method, an authentication's settings are those of any method.
        return {"type": "object", "anyOf": [patch_schema(one, shapes) for one in whole["oneOf"]]}
    if whole.get("type") != "object" or "properties" not in whole:
        return whole
    patch = {
        name: value
        for name, value in whole.items()
        if name not in ("required", "properties", "discriminator", "title")
    }
    patch["properties"] = {
        name: _nullable(patch_schema(value, shapes)) for name, value in whole["properties"].items()
    }
    return patch


def _nullable(schema: Schema) -> Schema:
    schema = {name: value for name, value in schema.items() if name != "default"}
    if "const" in schema or ({"type": "null"} in schema.get("anyOf", ()) and "properties" not in schema):
        return schema
    return {"anyOf": [schema, {"type": "null"}]}


def _followed(schema: Schema, shapes: dict[str, Schema]) -> Schema:
    reference = schema.get("$ref")
    if reference is None:
        return schema
    return {
        **shapes[reference.rpartition("/")[2]],
        **{name: value for name, value in schema.items() if name != "$ref"},
    }
