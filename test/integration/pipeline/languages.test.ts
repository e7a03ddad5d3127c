// Small apps of the languages beside Python and Node go through the whole pipeline, and the images that come out answer.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { isImageBuilt } from '../../../localnode/images/build.ts';
import { buildResult } from '../../../controller/pipeline/contract.ts';
import { answerOf } from '../../support/pipeline/images.ts';
import { startLab, type Lab } from '../../support/pipeline/lab.ts';
import { mit } from '../../support/pipeline/sample.ts';

let lab: Lab;
beforeAll(async () => {
  lab = await startLab();
});
afterAll(() => lab.stop());

interface App {
  readonly name: string;
  /** Base images beyond the ordinary ones. */
  readonly images: readonly string[];
  readonly files: Readonly<Record<string, string>>;
  readonly port: number;
  readonly answer: RegExp;
}

const page = 'hello from the page that was built first';
/** Without net/http, whose packages would take half a minute of processor time to compile. */
const goServer = `package main

import (
	"embed"
	"net"
	"os"
)

//go:embed dist
var files embed.FS

func main() {
	listener, err := net.Listen("tcp", ":"+os.Getenv("PORT"))
	if err != nil {
		panic(err)
	}
	for {
		connection, _ := listener.Accept()
		connection.Read(make([]byte, 1024))
		page, _ := files.ReadFile("dist/index.html")
		connection.Write(append([]byte("HTTP/1.0 200 OK\\r\\n\\r\\n"), page...))
		connection.Close()
	}
}
`;
const javaServer = `import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;

public class Main {
  public static void main(String[] arguments) throws Exception {
    var server = HttpServer.create(new InetSocketAddress(Integer.parseInt(System.getenv("PORT"))), 0);
    server.createContext("/", exchange -> {
      var body = "hello from Java".getBytes();
      exchange.sendResponseHeaders(200, body.length);
      exchange.getResponseBody().write(body);
      exchange.close();
    });
    server.start();
  }
}
`;
const pom = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>org.example</groupId><artifactId>shop</artifactId><version>1</version>
  <properties><maven.compiler.release>17</maven.compiler.release></properties>
  <build><plugins><plugin>
    <groupId>org.apache.maven.plugins</groupId><artifactId>maven-jar-plugin</artifactId><version>3.4.2</version>
    <configuration><archive><manifest><mainClass>Main</mainClass></manifest></archive></configuration>
  </plugin></plugins></build>
</project>
`;
const rustServer = `use std::io::{Read, Write};
fn main() {
    let port = std::env::var("PORT").unwrap();
    for stream in std::net::TcpListener::bind(format!("0.0.0.0:{port}")).unwrap().incoming() {
        let mut stream = stream.unwrap();
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(b"HTTP/1.0 200 OK\\r\\n\\r\\nhello from Rust");
    }
}
`;

function mixManifest(name: string, application: string, dependencies: string): string {
  return `defmodule ${name === 'shop' ? 'Shop' : 'Words'}.MixProject do
  use Mix.Project
  def project, do: [app: :${name}, version: "1.0.0", elixir: "~> 1.14", deps: [${dependencies}]]
  def application, do: [${application}]
end
`;
}

const elixirServer = `defmodule Shop.Application do
  use Application
  def start(_type, _arguments) do
    Supervisor.start_link([{Task, fn -> Shop.serve() end}], strategy: :one_for_one)
  end
end

defmodule Shop do
  def serve do
    port = String.to_integer(System.fetch_env!("PORT"))
    {:ok, listener} = :gen_tcp.listen(port, [:binary, packet: :raw, active: false, reuseaddr: true])
    accept(listener)
  end

  defp accept(listener) do
    {:ok, socket} = :gen_tcp.accept(listener)
    {:ok, _} = :gen_tcp.recv(socket, 0)
    :gen_tcp.send(socket, "HTTP/1.0 200 OK\\r\\n\\r\\n" <> Words.greeting())
    :gen_tcp.close(socket)
    accept(listener)
  end
end
`;

/** As `poetry lock` writes it, so that its hash is that of the manifest. */
const poetryLock = `[[package]]
name = "bottle"
version = "0.13.4"
description = ""
optional = false
python-versions = "*"
groups = ["main"]
files = []

[metadata]
lock-version = "2.1"
python-versions = "^3.10"
content-hash = "70aabfff7b63c0300ad84b1cc325262622f7067896f08ad02c398a5016d6fe90"
`;
const poetryManifest = `[tool.poetry]
name = "shop"
version = "0.1.0"
description = ""
authors = []
package-mode = false

[tool.poetry.dependencies]
python = "^3.10"
bottle = "0.13.4"
`;

const apps: readonly App[] = [
  {
    name: 'poetry',
    images: [],
    files: {
      'pyproject.toml': poetryManifest,
      'poetry.lock': poetryLock,
      'app.py':
        "import os\nfrom bottle import __version__, route, run\n@route('/')\ndef at():\n    return f'bottle {__version__}'\nrun(host='0.0.0.0', port=int(os.environ['PORT']))\n",
    },
    port: 8080,
    answer: /bottle 0\.13\.4/,
  },
  {
    name: 'go',
    images: ['golang-1.26'],
    files: {
      'go.mod': 'module example.org/shop\n\ngo 1.22\n',
      'cmd/shop/main.go': 'package main\n\nimport "example.org/shop/web"\n\nfunc main() { web.Serve() }\n',
      'web/serve.go': goServer.replace('package main', 'package web').replace('func main()', 'func Serve()'),
      'web/package.json': JSON.stringify({
        private: true,
        scripts: { build: `mkdir -p dist && echo "${page}" > dist/index.html` },
      }),
      '.gitignore': 'dist\n',
    },
    port: 8080,
    answer: new RegExp(page),
  },
  {
    name: 'deno',
    images: ['deno'],
    files: {
      // For a Dockerfile of the author's own, so the plan does not use it.
      '.dockerignore': '*\n!dist\n',
      'deno.json': '{\n  // comments are allowed\n  "tasks": { "start": "deno run --allow-net main.ts" },\n}\n',
      'main.ts': 'Deno.serve({ port: 8123 }, () => new Response("hello from Deno"));\n',
    },
    port: 8123,
    answer: /hello from Deno/,
  },
  {
    name: 'java',
    images: ['java-17-jdk', 'java-17-jre', 'maven-17'],
    files: { 'pom.xml': pom, 'src/main/java/Main.java': javaServer },
    port: 8080,
    answer: /hello from Java/,
  },
  {
    name: 'rust',
    images: ['rust'],
    files: {
      'Cargo.toml': '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n',
      'src/main.rs': rustServer,
    },
    port: 8080,
    answer: /hello from Rust/,
  },
  {
    name: 'php',
    images: ['php-8.2-cli'],
    files: { 'public/index.php': '<?php echo "hello from PHP";\n' },
    port: 8080,
    answer: /hello from PHP/,
  },
  {
    name: 'dotnet',
    images: ['ubuntu-noble', 'dotnet-8.0-sdk', 'dotnet-8.0-aspnet'],
    files: {
      '.dockerignore': '**/*.csproj\nglobal.json\nsrc/Words\n',
      'Shop.sln': '',
      'global.json': '{"sdk": {"version": "8.0.1", "rollForward": "disable"}}',
      'src/Shop/Shop.csproj':
        '<Project Sdk="Microsoft.NET.Sdk.Web"><PropertyGroup><TargetFramework>net8.0</TargetFramework><ImplicitUsings>enable</ImplicitUsings></PropertyGroup><ItemGroup><ProjectReference Include="..\\Words\\Words.csproj" /></ItemGroup></Project>',
      'src/Shop/Program.cs':
        'var app = WebApplication.Create(args);\napp.MapGet("/", () => Words.Greeting.Text);\napp.Run();\n',
      'src/Words/Words.csproj':
        '<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup><TargetFramework>net8.0</TargetFramework></PropertyGroup></Project>',
      'src/Words/Greeting.cs':
        'namespace Words;\npublic static class Greeting { public const string Text = "hello from .NET"; }\n',
    },
    port: 8080,
    answer: /hello from \.NET/,
  },
  {
    name: 'elixir',
    images: ['debian-trixie', 'elixir-1.18'],
    files: {
      '.dockerignore': 'mix.exs\nconfig\nwords\n',
      'mix.exs': mixManifest(
        'shop',
        'mod: {Shop.Application, []}, extra_applications: [:logger]',
        '{:words, path: "words"}',
      ),
      'config/config.exs': 'import Config\nconfig :shop, greeting: "hello from Elixir"\n',
      'lib/shop.ex': elixirServer,
      'words/mix.exs': mixManifest('words', '', ''),
      'words/lib/words.ex': 'defmodule Words do\n  def greeting, do: Application.fetch_env!(:shop, :greeting)\nend\n',
    },
    port: 8080,
    answer: /hello from Elixir/,
  },
  {
    name: 'pipenv',
    images: ['ubuntu-noble', 'python-3.12'],
    files: {
      Pipfile: '[packages]\nflask = "==3.1.1"\n[requires]\npython_version = "3.12"\n',
      'app.py':
        'import sys\nfrom flask import Flask\napp = Flask(__name__)\n@app.get("/")\ndef at():\n    return f"Python {sys.version_info.minor}"\n',
    },
    port: 8080,
    answer: /Python 12/,
  },
];

/** Their base images would take ten minutes more of every first run; `npm run up -- --base-images planned` builds them. */
const onlyWhenBuilt: ReadonlySet<string> = new Set(['java', 'rust', 'php', 'pipenv', 'dotnet', 'elixir']);

for (const { name, images, files, port, answer } of apps) {
  test(`a ${name} app becomes an image that responds as an unprivileged user`, async ({ skip }) => {
    const missing = onlyWhenBuilt.has(name) ? await missingOf(images) : [];
    skip(missing.length > 0, `not built on this machine: ${missing.join(', ')} (npm run up -- --base-images planned)`);
    for (const image of images) await lab.addImage(image);
    const ended = await lab.through(
      name,
      { files: { LICENSE: mit, ...files } },
      // The lab has no other Python than its own, unless it is added.
      { mirrorOf: ['docker.io', 'mcr.microsoft.com'], ...(name === 'pipenv' ? { missingImages: [] } : {}) },
    );
    assert.equal(ended.code, 0, ended.log.slice(-3000));
    const result = buildResult.parse(ended.message);
    assert.equal(result.port, port);
    const said = await answerOf(lab, result.image, port, '/');
    assert.match(said, answer);
    assert.match(said, /user=100[01]/);
  });
}

async function missingOf(images: readonly string[]): Promise<string[]> {
  const built = await Promise.all(images.map((image) => isImageBuilt(image)));
  return images.filter((_, index) => built[index] !== true);
}

test("retries a list that cannot be installed with the packages from the commit's day", async () => {
  const ended = await lab.through('of-the-day', {
    files: {
      LICENSE: mit,
      'requirements.txt': 'flask\nno-such-package-for-moorage-tests\n',
      'app.py': 'from flask import Flask\napp = Flask(__name__)\n',
    },
  });
  assert.equal(ended.code, 42, ended.log.slice(-3000));
  assert.match(ended.log, /trying the versions of 2026-01-02T03:04:05Z/);
  assert.match(ended.log, /no-such-package-for-moorage-tests/);
});
