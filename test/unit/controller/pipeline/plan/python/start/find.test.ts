// Which file starts a Python app, and by which command.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { findStart } from '../../../../../../../controller/pipeline/plan/python/start/find.ts';
import { createMemoryTree } from '../../../../../../../controller/pipeline/tree.ts';
import { fastapi, flask, type Files } from '../../plan.cases.ts';

const launch = 'import gradio as gr\nwith gr.Blocks() as demo:\n  pass\n';
const script = (text: string): string => `${text}\nif __name__ == "__main__":\n    main()\n`;

const cases: readonly {
  name: string;
  files: Files;
  names?: readonly string[];
  command: RegExp;
  framework?: string;
  port?: number;
  needs?: readonly string[];
  because?: RegExp;
}[] = [
  {
    name: 'the application that a module makes by its own function, and not the function',
    files: {
      'main.py': 'from fastapi import FastAPI\ndef create_app():\n    return FastAPI()\n\napp = create_app()\n',
    },
    command: /uvicorn --host 0\.0\.0\.0 --port \$PORT main:app$/,
    framework: 'FastAPI',
  },
  {
    name: 'the application that another module makes',
    files: {
      'shop/__init__.py': 'from flask import Flask\ndef create_app():\n    return Flask(__name__)\n',
      'wsgi.py': 'from shop import create_app\napp = create_app()\n',
    },
    command: /gunicorn .* wsgi:app$/,
    framework: 'Flask',
  },
  {
    name: 'the file that launches, and not the one that helps',
    files: {
      'shared.py': 'import gradio\ndef on_file():\n    pass\n',
      'main.py': script('def main():\n    import gradio as gr\n    gr.Blocks().launch(server_port=7861)\n'),
    },
    command: /^export GRADIO_SERVER_PORT=\$PORT; exec python main\.py$/,
    framework: 'Gradio',
    port: 7861,
  },
  {
    name: 'the file that imports the one with the Dash app',
    files: {
      'app/config.py': 'from dash import Dash\napp = Dash(__name__)\nserver = app.server\n',
      'app/app.py': 'from dash import html\nfrom config import app\napp.layout = html.Div()\n',
    },
    names: ['dash'],
    command: /^exec python -c .*sys\.path\.insert\(0, .*app.*\); from app import app as it; it\.run\(/,
    framework: 'Dash',
    because: /^app\/app\.py imports dash/,
  },
  {
    name: 'index.py of Dash, by the server that it imports',
    files: {
      'app.py': 'import dash\napp = dash.Dash(__name__)\nserver = app.server\n',
      'index.py': 'from dash import dcc\nfrom app import app, server, path\napp.layout = dcc.Location()\n',
    },
    names: ['dash', 'gunicorn'],
    command: /gunicorn .* index:server$/,
    framework: 'Dash',
  },
  {
    name: 'the page of Streamlit whose modules alone import it',
    files: {
      'src/app.py': 'from src.pages_of.upload import upload\nupload()\n',
      'src/pages_of/upload.py': 'import streamlit as st\ndef upload():\n    st.title("x")\n',
    },
    names: ['streamlit'],
    command: /streamlit run src\/app\.py /,
    framework: 'Streamlit',
  },
  {
    name: 'Mesop that the file itself mounts and serves',
    files: {
      'main.py': script(
        'import mesop as me\nfrom fastapi import FastAPI\n@me.page(path="/")\ndef page():\n    pass\ndef main():\n    app = FastAPI()\n    uvicorn.run("main:me", port=12000)\n',
      ),
    },
    names: ['mesop', 'fastapi'],
    command: /^exec python main\.py$/,
    framework: 'Mesop',
    port: 12000,
  },
  {
    name: 'a main file before an application that lies deep',
    files: {
      'main.py': script('import asyncio\ndef main():\n    web.run_app(make())\n'),
      'speech/service/app.py': 'from flask import Flask\napp = Flask(__name__)\n',
    },
    command: /^exec python main\.py$/,
  },
  {
    name: 'the page that the README starts, before one that mounts it for another purpose',
    files: {
      'README.md': 'Run `python app.py`.\n',
      'app.py': 'from shop.ui import App\ndemo = App().make()\ndemo.queue().launch()\n',
      'sso.py': 'import gradio as gr\nfrom fastapi import FastAPI\napp = FastAPI()\ngr.mount_gradio_app(app, 1, "/")\n',
    },
    names: ['gradio', 'fastapi'],
    command: /exec python app\.py$/,
    framework: 'Gradio',
  },
  {
    name: 'the file that the README starts',
    files: {
      'README.md': 'Run\n\n```\nstreamlit run chat_ui.py\n```\n',
      'app.py': 'import streamlit as st\n',
      'chat_ui.py': 'import streamlit as st\n',
    },
    command: /streamlit run chat_ui\.py /,
    framework: 'Streamlit',
  },
  {
    name: 'a main file that serves, and not one that only computes',
    files: {
      'run.py': script('print(1)'),
      'web_server.py': script('import http.server\nhttp.server.HTTPServer().serve_forever()\n'),
    },
    command: /python web_server\.py$/,
  },
  {
    name: 'Chainlit',
    files: { 'app.py': 'import chainlit as cl\n@cl.on_message\nasync def main(m):\n    pass\n' },
    names: ['chainlit'],
    command: /^exec chainlit run app\.py --headless --host 0\.0\.0\.0 --port \$PORT$/,
    framework: 'Chainlit',
    needs: [],
  },
  {
    name: 'Dash with a server',
    files: { 'app.py': 'from dash import Dash\napp = Dash(__name__)\nserver = app.server\n' },
    command: /^exec gunicorn --bind 0\.0\.0\.0:\$PORT --threads 8 app:server$/,
    framework: 'Dash',
    needs: ['dash', 'gunicorn'],
  },
  {
    name: 'Dash without one',
    files: { 'app.py': 'import dash\napp = dash.Dash()\nif __name__ == "__main__":\n    app.run(debug=True)\n' },
    command: /from app import app as it; it\.run\(host=.*0\.0\.0\.0.*PORT/,
    framework: 'Dash',
  },
  {
    name: 'NiceGUI',
    files: { 'main.py': 'from nicegui import ui\nui.run(port=8123)\n' },
    command: /^exec python main\.py$/,
    framework: 'NiceGUI',
  },
  {
    name: 'Panel',
    files: { 'app.py': 'import panel as pn\npn.Row().servable()\n' },
    command:
      /^exec panel serve app\.py --address 0\.0\.0\.0 --port \$PORT --allow-websocket-origin='\*' --use-xheaders$/,
    framework: 'Panel',
  },
  {
    name: 'Mesop',
    files: { 'main.py': 'import mesop as me\n@me.page(path="/")\ndef page():\n    pass\n' },
    command: /^exec gunicorn .* main:me$/,
    framework: 'Mesop',
    needs: ['mesop', 'gunicorn'],
  },
  {
    name: 'marimo',
    files: { 'notebook.py': 'import marimo\napp = marimo.App()\n' },
    command: /^exec marimo run notebook\.py --headless --no-token --host 0\.0\.0\.0 --port \$PORT$/,
    framework: 'marimo',
  },
  {
    name: 'Voilà',
    files: { 'report.ipynb': '{}' },
    names: ['voila'],
    command: /^exec voila --no-browser --Voila\.ip=0\.0\.0\.0 --port=\$PORT report\.ipynb$/,
    framework: 'Voilà',
  },
  {
    name: 'an interface mounted into the application that serves it',
    files: { 'main.py': `${fastapi}${launch}gr.mount_gradio_app(app, demo, path="/")\n` },
    command: /uvicorn .* main:app$/,
    framework: 'FastAPI',
    because: /holds the FastAPI application "app"\.$/,
  },
  {
    name: 'a module of a package',
    files: {
      'tool/__init__.py': '',
      'tool/gui.py': script('from tool.x import y\nimport gradio as gr\ndef main():\n    gr.Blocks().launch()\n'),
      'tool/x.py': 'y = 1\n',
    },
    command: /exec python -m tool\.gui$/,
    framework: 'Gradio',
  },
  {
    name: 'a command of the project',
    files: {
      'pyproject.toml':
        '[project]\nname = "shop"\n[project.scripts]\nshop = "shop.cli:main"\nshop-server = "shop.cli:serve"\n',
      'shop/cli.py': 'def serve():\n    run(port=7000)\n',
    },
    command: /^exec shop-server$/,
    port: 7000,
  },
  {
    name: 'Django in its folder',
    files: { 'site/manage.py': 'import django', 'site/shop/wsgi.py': '' },
    command: /^cd site && exec gunicorn .* shop\.wsgi:application$/,
    framework: 'Django',
  },
  {
    name: 'Django with channels',
    files: { 'manage.py': '', 'shop/wsgi.py': '', 'shop/asgi.py': '' },
    names: ['channels', 'django'],
    command: /exec uvicorn .* shop\.asgi:application$/,
    framework: 'Django',
  },
  {
    name: 'the file of an application that only a function has',
    files: {
      'main.py':
        'from flask import Flask\ndef main():\n    app = Flask(__name__)\n    app.run(host="0.0.0.0", port=5005)\nif __name__ == "__main__":\n    main()\n',
    },
    command: /^exec python main\.py$/,
    port: 5005,
  },
  {
    name: 'the file of a Dash app that only a function has',
    files: {
      'main.py': script('from dash import Dash\ndef main():\n    app = Dash(__name__)\n    app.run(debug=False)\n'),
    },
    names: ['dash'],
    command: /^exec python main\.py$/,
    framework: 'Dash',
  },
  {
    name: 'the application of another name, and not the one that it mounts',
    files: {
      'main.py': 'from fastapi import FastAPI as Api\ninner = Api()\nouter = Api()\nouter.mount("/v1", inner)\n',
    },
    command: / main:outer$/,
    framework: 'FastAPI',
  },
  {
    name: 'the application that is wrapped under the same name',
    files: {
      'main.py': 'from fastapi import FastAPI\napp = FastAPI()\napp = ASGIApp(sio, app)\n',
    },
    command: / main:app$/,
    framework: 'FastAPI',
  },
  {
    name: 'the function that makes the application and needs no argument',
    files: {
      'web.py':
        'from flask import Flask\ndef build(name):\n    return Flask(name)\ndef start_web(name="web"):\n    return Flask(name)\n',
    },
    command: / 'web:start_web\(\)'$/,
    framework: 'Flask',
  },
  {
    name: 'the file that serves, and not the one whose prompt has the imports of a page',
    files: {
      'app.py': script('import uvicorn\ndef main():\n    uvicorn.run("api:app", host="0.0.0.0", port=8001)\n'),
      'prompts.py': 'TEMPLATE = """\nimport streamlit as st\nst.set_page_config(title="x")\n"""\n',
    },
    names: ['streamlit'],
    command: /^exec python app\.py$/,
    port: 8001,
  },
  {
    name: 'the command of the project whose code serves',
    files: {
      'pyproject.toml': '[project]\nname = "shop"\n[project.scripts]\nshop = "shop.cli:main"\n',
      'src/shop/cli.py': 'from .web import serve\ndef main():\n    serve()\n',
      'src/shop/web.py': 'import uvicorn\ndef serve():\n    uvicorn.run("shop.api:make", port=7000)\n',
    },
    command: /^exec shop$/,
    because: /whose code serves/,
  },
  {
    name: 'Flask where the module makes its application itself',
    files: { 'app.py': flask, 'helpers.py': 'from flask import Flask\ndef create_app():\n    return Flask("x")\n' },
    command: / app:app$/,
    framework: 'Flask',
  },
];

for (const { name, files, names = [], command, framework, port, needs, because = /./ } of cases) {
  test(`starts ${name}`, () => {
    const start = findStart(createMemoryTree(files), new Set(names));
    assert.ok(start !== undefined);
    assert.match(start.command, command);
    assert.equal(start.framework, framework);
    assert.match(start.because, because);
    if (port !== undefined) assert.equal(start.port, port);
    if (needs !== undefined) assert.deepEqual(start.needs, needs);
  });
}

test('starts nothing from helper files', () => {
  assert.equal(
    findStart(createMemoryTree({ 'util.py': 'x = 1\n', 'tests/test_a.py': script('x') }), new Set()),
    undefined,
  );
});
