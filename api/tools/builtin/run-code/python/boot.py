# Runs the caller's code in this interpreter, and writes what came of it behind a mark at the end of standard output.
# A fresh interpreter runs each call, so nothing here has to be hidden from the code or put back after it. Modules in C do
# the work of ast and json, which take longer to import than most code runs.
import sys


def main():
    import _ast, builtins

    only_ast = 0x400
    json = Json()
    task = json.loads(sys.stdin.buffer.read().decode())
    code, mark, limit = task["code"], task["mark"], task["limit"]
    sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")
    builtins.exit = builtins.quit = sys.exit
    module = type(sys)("__main__")
    sys.modules["__main__"] = module
    if "input" in task:
        module.input = task["input"]
    sys.meta_path.insert(0, Lines(code))
    if "asyncio" in code:
        run_asyncio_without_sockets()

    def run():
        body = compile(code, "code.py", "exec", only_ast)
        last = body.body.pop().value if body.body and isinstance(body.body[-1], _ast.Expr) else None
        exec(compile(body, "code.py", "exec"), module.__dict__)
        if last is None:
            return None
        return eval(compile(_ast.Expression(last), "code.py", "eval"), module.__dict__)

    result = {"ok": True, "value": None, "value_type": "NoneType", "value_text": "None", "truncated": False, "error": None}
    try:
        value = run()
        result["value_type"] = type(value).__name__
        text = value if isinstance(value, str) else described(value)
        result["value_text"] = text[:limit]
        result["value"] = plain(value, ())
        encoded = json.dumps(result["value"])
        result["truncated"] = len(text) > limit or len(encoded) > limit
        if len(encoded) > limit:
            result["value"] = encoded[:limit]
    except MemoryError as error:
        # Nothing can be said before there is memory to say it in.
        line = line_of(error)
        error.__traceback__ = None
        module.__dict__.clear()
        result = {**result, "ok": False, "value": None, "value_text": "", "error": {"name": "MemoryError", "message": str(error)[:4000], "line": line, "stack": ""}}
    except BaseException as error:
        if not isinstance(error, SystemExit) or error.code not in (None, 0):
            result = {**result, "ok": False, "value": None, "value_type": "NoneType", "value_text": "", "error": fault(error)}
    for stream in (sys.stderr, sys.stdout):
        stream.flush()
    # What the code has put in the place of standard output does not get this.
    sys.__stdout__.buffer.write(mark.encode() + json.dumps(result).encode())
    sys.__stdout__.buffer.flush()


class Lines:
    """Gives linecache the lines of the code when it is imported, which is when something needs them."""

    def __init__(self, code):
        self.code = code

    def find_spec(self, name, path, target=None):
        if name != "linecache":
            return None
        sys.meta_path.remove(self)
        spec = next(found for finder in sys.meta_path if (found := finder.find_spec(name, path, target)))
        self.loader, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        self.loader.exec_module(module)
        module.cache["code.py"] = (len(self.code), None, self.code.splitlines(True), "code.py")


class Json:
    """json.loads() and json.dumps() with their defaults."""

    strict, object_hook, object_pairs_hook, parse_float, parse_int, parse_constant, memo = True, None, None, float, int, float, {}

    def __init__(self):
        import _json

        self.quote, self.make_encoder, self.scan = _json.encode_basestring_ascii, _json.make_encoder, _json.make_scanner(self)

    def loads(self, text):
        return self.scan(text, 0)[0]

    def dumps(self, value):
        if isinstance(value, str):
            return self.quote(value)
        return "".join(self.make_encoder({}, None, self.quote, None, ": ", ", ", False, False, True)(value, 0))


def described(value):
    try:
        return repr(value)
    except Exception as error:
        return f"<repr() of {type(value).__name__} failed: {type(error).__name__}>"


def fault(error):
    import traceback

    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != "code.py":
        trace = trace.tb_next
    name, message = type(error).__name__, described_error(error)
    try:
        stack = "".join(traceback.format_exception(type(error), error, trace))
    except BaseException:
        stack = ""
    stack = stack.replace("/wlr/build-staging/python/v3.12.0-aio/checkout/Lib/", "")
    return {"name": name, "message": message[:4000], "line": line_of(error), "stack": stack[-4000:]}


def line_of(error):
    """The caller's own line that was last entered."""
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == "code.py" else None
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == "code.py":
            line = step.tb_lineno
        step = step.tb_next
    return line


def described_error(error):
    try:
        message = str(error)
    except BaseException:
        return ""
    if isinstance(error, ModuleNotFoundError):
        root = (error.name or "").partition(".")[0].lstrip("_")
        if root in sys.stdlib_module_names:
            return f"{message}: this part of the standard library needs what a sandbox does not have"
        return f"{message}: only Python's standard library is available; nothing can be installed"
    if isinstance(error, LookupError) and type(error).__name__ == "ZoneInfoNotFoundError":
        return f"{error.args[0]}: there is no time zone database here; use datetime.timezone with an offset"
    return message


def plain(value, above):
    """As JSON has it: what it has no form for is null, and repr() says it in value_text."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value) if abs(value) < 2**53 else str(int(value))
    if isinstance(value, float):
        return float(value) if value - value == 0 else None
    if id(value) in above:
        return "[Circular]"
    if len(above) > 150:
        return "[Nested too deeply]"
    return of_many(value, above + (id(value),))


def of_many(value, above):
    import _collections, _collections_abc as abc

    if isinstance(value, abc.Mapping):
        return {key if isinstance(key, str) else described(key): plain(part, above) for key, part in value.items()}
    if isinstance(value, (list, tuple, abc.Set, _collections.deque, abc.MappingView, range, bytes, bytearray)):
        return [plain(part, above) for part in value]
    if type(value).__module__ == "array":
        return [plain(part, above) for part in value]
    if hasattr(type(value), "__dataclass_fields__"):
        import dataclasses

        return {field.name: plain(getattr(value, field.name), above) for field in dataclasses.fields(value)}
    if type(value).__module__ == "datetime" and hasattr(value, "isoformat"):
        return value.isoformat()
    if type(value).__module__ in ("datetime", "decimal", "_decimal", "fractions", "uuid", "pathlib", "ipaddress") or isinstance(value, complex):
        return str(value)
    return None


def run_asyncio_without_sockets():
    """Its usual loop wakes itself through a pair of sockets. Nothing here can wake it: it only waits."""
    import asyncio, time

    class Waiting:
        def select(self, seconds=None):
            time.sleep(seconds or 0)
            return []

    class Loop(asyncio.base_events.BaseEventLoop):
        _selector = Waiting()

        def _process_events(self, events):
            pass

        def _write_to_self(self):
            pass

    class Policy(asyncio.events.BaseDefaultEventLoopPolicy):
        _loop_factory = Loop

    asyncio.set_event_loop_policy(Policy())


main()
