// Plans Java apps that use Maven or Gradle: runs the built jar on an image without build tools.
import { languages } from '../../../../crds/languages.ts';
import type { Tree } from '../../tree.ts';
import { findMissingImage } from '../common/frontend.ts';
import { findGitTool, renderToolRepository, warnAboutHistory } from '../common/history.ts';
import {
  renderArguments,
  defaultPort,
  renderDockerfile,
  type Planner,
  type PlanInput,
  type Problem,
  type Recipe,
  renderShellCommand,
  renderStep,
} from '../recipe.ts';
import { formatReport } from '../build-warnings.ts';
import { findDeclaredStart } from '../platforms/start.ts';
import { declareSpringServices } from './database.ts';

const ignore = ['.git', '**/target', '**/build', '**/.gradle', '**/node_modules', '**/.DS_Store'];
const gradleFiles = ['build.gradle', 'build.gradle.kts', 'settings.gradle', 'settings.gradle.kts'];

interface Build {
  readonly tool: 'Maven' | 'Gradle';
  readonly file: string;
  readonly text: string;
}

export const java: Planner = {
  plan(tree: Tree, input: PlanInput): Recipe | Problem | undefined {
    const build = findBuild(tree);
    if (build === undefined) return undefined;
    if (build.tool === 'Maven' && !build.text.includes('<project')) return createMalformedProblem();
    if (build.tool === 'Gradle' && !tree.has('gradlew')) return createNoWrapperProblem(build.file);
    const version = resolveJavaVersion(tree, build.text);
    const image = languages.java.images.find((each) => each.version >= version);
    if (image === undefined) return createVersionProblem(build.file, version);
    return (
      findMissingImage(input, [image.build, image.run], 'Java', build.file) ?? createRecipe(tree, input, build, image)
    );
  },
  declareSettings: declareSpringServices,
};

function findBuild(tree: Tree): Build | undefined {
  if (tree.has('pom.xml')) return { tool: 'Maven', file: 'pom.xml', text: tree.readFile('pom.xml') ?? '' };
  const file = gradleFiles.find((each) => tree.has(each));
  return file === undefined
    ? undefined
    : { tool: 'Gradle', file, text: gradleFiles.map((each) => tree.readFile(each) ?? '').join('\n') };
}

function createMalformedProblem(): Problem {
  return {
    problem: {
      rule: 'plan/manifest',
      severity: 'error',
      file: 'pom.xml',
      message: 'This file is not a project of Maven.',
      fix: 'Correct it; "mvn validate" shows where the error is.',
    },
  };
}

function createNoWrapperProblem(file: string): Problem {
  return {
    problem: {
      rule: 'plan/no-wrapper',
      severity: 'error',
      file,
      message: 'This is a Gradle project without its wrapper, so nothing says which Gradle builds it.',
      fix: 'Run "gradle wrapper" and commit gradlew and the folder gradle/wrapper.',
    },
  };
}

function createVersionProblem(file: string, version: number): Problem {
  return {
    problem: {
      rule: 'plan/java-version',
      severity: 'error',
      file,
      message: `The app asks for Java ${version}, which is not available.`,
      fix: `Ask for ${languages.java.images.map((each) => each.version).join(', ')} or less, or add a Dockerfile.`,
    },
  };
}

function createRecipe(
  tree: Tree,
  input: PlanInput,
  build: Build,
  image: (typeof languages.java.images)[number],
): Recipe {
  const framework = detectFramework(build.text);
  const port = input.port ?? defaultPort;
  const git = findGitTool(tree);
  const web = findOwnCommand(tree);
  const reason = `${build.file} makes this a Java app, built by ${build.tool}${tree.has(getWrapper(build)) ? ' of the version that its wrapper names' : ''} on Java ${image.version}.${web === undefined ? ' The jar that the build makes is started.' : ' The Procfile defines how it starts.'}`;
  return {
    plan: { strategy: 'java', reason, port, ...(framework === undefined ? {} : { framework }) },
    dockerfile: renderDockerfile(reason, [
      ...renderBuildStage(tree, input, build, image.build),
      '',
      `FROM ${image.run}`,
      'RUN useradd --create-home --uid 1001 app && install -d -o 1001 -g 1001 /app',
      'WORKDIR /app',
      'COPY --link --from=build --chown=1001:1001 /out/ ./',
      // Spring Boot, Quarkus and Micronaut read these variables. Part of the memory is left for non-heap use.
      `ENV PORT=${port} SERVER_PORT=${port} SERVER_ADDRESS=0.0.0.0 SERVER_FORWARD_HEADERS_STRATEGY=framework QUARKUS_HTTP_PORT=${port} QUARKUS_HTTP_HOST=0.0.0.0 MICRONAUT_SERVER_PORT=${port} JAVA_TOOL_OPTIONS=-XX:MaxRAMPercentage=60`,
      'USER 1001:1001',
      `EXPOSE ${port}`,
      renderShellCommand(web ?? 'exec java $JAVA_OPTS -jar app.jar'),
    ]),
    builds: listPageFolders(build.text),
    ignore,
    findings: git === undefined ? [] : warnAboutHistory(git),
  };
}

const pagePlugin = /frontend-(?:maven|gradle)-plugin|com\.github\.node-gradle|org\.siouan\.frontend/;
/** <workingDirectory>${project.basedir}/web</…> of Maven, nodeProjectDir = file("web") and the like of Gradle. */
const pageFolder =
  /(?:<workingDirectory>|\b(?:nodeProjectDir|packageJsonDirectory|workingDir)\b[^"'\n]{0,40}["'])\s{0,20}(?:\$\{?(?:project\.)?(?:basedir|projectDir|rootDir)\}?\/)?(?:\.\/)?([\w./-]{1,100})/g;

/** Lists the folders whose pages a plugin of the build builds with Node. */
function listPageFolders(text: string): string[] {
  if (!pagePlugin.test(text)) return [];
  return [...text.matchAll(pageFolder)].map((match) => (match[1] ?? '').replace(/\/+$/, ''));
}

/** A Procfile names build outputs; only a command that starts a jar applies here. */
function findOwnCommand(tree: Tree): string | undefined {
  const web = findDeclaredStart(tree)?.command;
  return web !== undefined && /\s-jar\s/.test(web)
    ? web.replace(/(?:\S{0,200}\/)?\S{1,100}\.jar\b/, 'app.jar')
    : undefined;
}

function detectFramework(text: string): string | undefined {
  if (/org\.springframework\.boot|spring-boot/.test(text)) return 'Spring Boot';
  if (/io\.quarkus/.test(text)) return 'Quarkus';
  if (/io\.micronaut/.test(text)) return 'Micronaut';
  return undefined;
}

function getWrapper({ tool }: Build): string {
  return tool === 'Maven' ? 'mvnw' : 'gradlew';
}

/** The runnable jar is the largest one, apart from sources, documentation and plain jars. */
const collect =
  'mkdir -p /out && if [ -d target/quarkus-app ]; then cp -r target/quarkus-app/. /out/ && mv /out/quarkus-run.jar /out/app.jar; elif [ -d build/quarkus-app ]; then cp -r build/quarkus-app/. /out/ && mv /out/quarkus-run.jar /out/app.jar; else jar="$(find . -path "*/target/*.jar" -o -path "*/build/libs/*.jar" | grep -vE "(-plain|-sources|-javadoc|-tests|original-.*)\\.jar|/(classes|test-classes|dependency|lib|\\.mvn|wrapper)/" | xargs -r ls -S | head -1)" && test -n "$jar" && cp "$jar" /out/app.jar; fi';

/** Suppresses the line per download; the Maven of older wrappers does not have --no-transfer-progress. */
const quiet = '-Dorg.slf4j.simpleLogger.log.org.apache.maven.cli.transfer.Slf4jMavenTransferListener=warn';

/** Lombok before 1.18.20 changes the compiler from within, which Java 16 and later forbid unless these are given. */
const opens = ['code', 'comp', 'file', 'main', 'model', 'parser', 'processing', 'tree', 'util', 'jvm']
  .map((part) => `--add-opens=jdk.compiler/com.sun.tools.javac.${part}=ALL-UNNAMED`)
  .join(' ');
// The image sets a variable that a wrapper would treat as arguments.
const mavenWrapper = 'env -u MAVEN_CONFIG sh ./mvnw';

/** A wrapper whose Maven cannot be fetched is replaced by the Maven of the image. */
function renderWrapper({ tool }: Build): string {
  const wrapper = tool === 'Maven' ? 'mvnw' : 'gradlew';
  const lineEnds = `sed -i 's/\\r$//' ${wrapper} && `;
  return tool === 'Gradle'
    ? lineEnds
    : `${lineEnds}{ ${mavenWrapper} --version || { ${formatReport('maven-wrapper', wrapper)}; printf '#!/bin/sh\\nexec mvn "$@"\\n' > mvnw; }; } && `;
}

function renderBuildStage(tree: Tree, input: PlanInput, build: Build, image: string): string[] {
  const wrapper = tree.has(getWrapper(build));
  const cache = `--mount=type=cache,target=/root/.m2 --mount=type=cache,target=/root/.gradle`;
  const maven = `${wrapper ? mavenWrapper : 'mvn'} --batch-mode ${quiet} -DskipTests package`;
  const gradle = 'sh ./gradlew --no-daemon assemble -x test';
  return [
    `FROM ${image} AS build`,
    'WORKDIR /app',
    ...(build.tool === 'Maven' && /lombok/.test(build.text) ? [`ENV MAVEN_OPTS="${opens}"`] : []),
    ...renderArguments(input),
    'COPY . .',
    ...renderToolRepository(findGitTool(tree), tree.date),
    ...renderStep(
      build.file,
      `building with ${build.tool}`,
      `RUN ${cache} ${wrapper ? renderWrapper(build) : ''}${build.tool === 'Maven' ? maven : gradle} && ${collect}`,
    ),
  ];
}

const versionPatterns: readonly RegExp[] = [
  /<(?:java\.version|maven\.compiler\.(?:release|target|source)|release|jdk\.version)>\s{0,9}(?:1\.)?(\d{1,2})\s{0,9}</,
  /JavaLanguageVersion\.of\(\s{0,9}(\d{1,2})/,
  /(?:sourceCompatibility|targetCompatibility)\s{0,9}=?\s{0,9}(?:JavaVersion\.VERSION_)?["']?(?:1[._])?(\d{1,2})/,
  /jvmToolchain\(\s{0,9}(\d{1,2})/,
];
const oldest = 17;

const files: readonly (readonly [file: string, pattern: RegExp])[] = [
  ['system.properties', /^java\.runtime\.version\s{0,9}=\s{0,9}(?:1\.)?(\d{1,2})/m],
  ['.tool-versions', /^java\s{1,9}(?:[a-z]{1,20}-)?(\d{1,2})/m],
  ['.sdkmanrc', /^java=(\d{1,2})/m],
];

/**
 * Reads the requested version. Returns 17 if there is none or it is older, because newer Java compiles for older
 * versions.
 */
function resolveJavaVersion(tree: Tree, build: string): number {
  const named = [
    ...versionPatterns.map((pattern) => pattern.exec(build)),
    ...files.map(([file, pattern]) => pattern.exec(tree.readFile(file, 4096) ?? '')),
  ].find((match) => match !== null);
  return Math.max(oldest, Number(named?.[1] ?? oldest));
}
