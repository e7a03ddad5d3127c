"""Calls every operation of a client that openapi-python-client generated: python client.py PACKAGE_FOLDER URL CALLS."""

import datetime
import importlib
import inspect
import json
import pathlib
import sys
import typing

from openapi_python_client.utils import snake_case as snake

folder, url, calls = pathlib.Path(sys.argv[1]), sys.argv[2], json.load(open(sys.argv[3]))
sys.path.insert(0, str(folder.parent))
package = importlib.import_module(folder.name)
client = package.Client(base_url=url, timeout=90.0)
modules = {file.stem: f"{folder.name}.api.{file.parent.name}.{file.stem}" for file in folder.glob("api/*/*.py")}


def value_of(annotation, given):
    """A value as the annotation wants it: enums and models are made of plain JSON."""
    options = [annotation, *getattr(annotation, "__args__", ())]
    for option in options:
        if hasattr(option, "from_dict") and isinstance(given, dict):
            return option.from_dict(given)
        if inspect.isclass(option) and issubclass(option, str) and option is not str:
            return option(given)
        if option is datetime.date:
            return datetime.date.fromisoformat(given)
    return given


results = []
for call in calls:
    module = importlib.import_module(modules[snake(call["id"])])
    # With the types that are only named, such as those of a union.
    known = typing.get_type_hints(module.sync_detailed)
    given = {snake(name): value for name, value in {**call["params"], **call["query"]}.items()}
    # A name that the generated code uses itself gets an underscore or the part it stands in at its end.
    names = {name: next((one for one in (name, f"{name}_", f"{name}_query", f"{name}_path") if one in known), None) for name in given}
    sent = {names[name]: value_of(known[names[name]], value) for name, value in given.items() if names[name]}
    left = [name for name in given if names[name] is None]
    if "body" in known and call.get("body") is not None:
        sent["body"] = value_of(known["body"], call["body"])
    # Untyped: the generator took the body for any value.
    untyped = "body" in known and known["body"] is typing.Any
    response = module.sync_detailed(client=client, **sent)
    results.append({"id": call["id"], "status": int(response.status_code), "left": left, "untyped": untyped, "parsed": response.parsed is not None})
print(json.dumps(results))
