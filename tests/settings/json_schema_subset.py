"""As much of JSON Schema as ours uses: enough to hold the schema against documents."""

import re

from ralph.settings.paths import Json

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}


def valid(value: object, schema: Json, root: Json) -> bool:
    """Whether the schema, part of `root`, admits the value."""
    if "$ref" in schema:
        return valid(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    if "anyOf" in schema:
        return any(valid(value, choice, root) for choice in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    return of_type(value, schema["type"]) and fits(value, schema, root)


def of_type(value: object, name: str) -> bool:
    return isinstance(value, TYPES[name]) and isinstance(value, bool) == (name == "boolean")


def fits(value: object, schema: Json, root: Json) -> bool:
    match value:
        case dict():
            return object_fits(value, schema, root)
        case list():
            return all(valid(item, schema["items"], root) for item in value)
        case str():
            return bool(re.search(schema.get("pattern", ""), value))
        case int() | float():
            return number_fits(value, schema)
        case _:
            return True


def object_fits(value: Json, schema: Json, root: Json) -> bool:
    properties, others = schema.get("properties", {}), schema["additionalProperties"]
    complete = all(key in value for key in schema.get("required", ()))
    known = [key for key in value if key in properties]
    odd = [key for key in value if key not in properties]
    return (
        complete
        and all(valid(value[key], properties[key], root) for key in known)
        and all(others is not False and valid(value[key], others, root) for key in odd)
    )


def number_fits(value: float, schema: Json) -> bool:
    least, most = schema.get("minimum", value), schema.get("maximum", value)
    return bool(least <= value <= most and value > schema.get("exclusiveMinimum", value - 1))
