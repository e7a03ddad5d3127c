// The port that a Python file listens on regardless of $PORT.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { findPythonPort } from '../../../../../../controller/pipeline/plan/python/port.ts';
import { parsePython } from '../../../../../../controller/pipeline/plan/syntax/python.ts';

const port = (text: string): number | undefined => findPythonPort(parsePython(text));

test('takes the port of the call that listens', () => {
  assert.equal(port('uvicorn.run(app, host="0.0.0.0", port=8123)'), 8123);
  assert.equal(port('HTTPServer(("", 8765), Handler).serve_forever()'), 8765);
  assert.equal(port('make_server("0.0.0.0", 9000, app)'), 9000);
  assert.equal(port('app.listen(8888)'), 8888);
  assert.equal(port('PORT = 5432\napp.run(port=PORT)'), 5432);
  assert.equal(port('def main(port: int = 7000):\n    app.run(port=port)\n'), 7000);
  assert.equal(port('p.add_argument("--port", default=7860)\nui.launch(server_port=args.port)'), 7860);
});

test('takes no port of an address that only a client connects to', () => {
  assert.equal(port('s.connect(("10.255.255.255", 8081))\nuvicorn.run(app, port=9000)'), 9000);
  assert.equal(port('s.connect(("192.0.2.1", 8081))'), undefined);
  assert.equal(port('client = Client(host="example.org", port=8123)'), undefined);
  assert.equal(port('"""\napp.run(port=1234)\n"""\n'), undefined);
});

test('leaves the port open if it follows $PORT, and takes the default of another variable', () => {
  assert.equal(port('app.run(port=int(os.environ.get("PORT", 5000)))'), undefined);
  assert.equal(port('app.run(port=os.environ["PORT"])'), undefined);
  assert.equal(port('port = int(os.getenv("PORT") or 8000)\napp.run(port=port)'), undefined);
  assert.equal(port('class S(BaseSettings):\n    port: int = 8000\nuvicorn.run(app, port=S().port)'), undefined);
  // The platform sets only PORT.
  assert.equal(port('app.run(port=int(os.getenv("APP_PORT", "8000")))'), 8000);
  assert.equal(port('DB = os.environ["DB_PORT"]\napp.run(port=5050)'), 5050);
});

test('takes the usual port of a framework that reads none', () => {
  assert.equal(port('import uvicorn\nuvicorn.run("main:app", host="0.0.0.0")'), 8000);
  assert.equal(port('from flask import Flask\napp.run(debug=True)'), 5000);
  assert.equal(port('import flask, subprocess\nsubprocess.run(["ls"])'), undefined);
});
