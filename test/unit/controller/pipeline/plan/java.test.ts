// What a plan of a Java app does for servers that its settings look for, for its wrapper and for Lombok.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { makePlan } from '../../../../../controller/pipeline/plan/plan.ts';
import { mergePlatforms } from '../../../../../controller/pipeline/plan/platforms/settings.ts';
import { createMemoryTree } from '../../../../../controller/pipeline/tree.ts';
import { sampleInput } from '../../../../support/pipeline/sample.ts';
import type { Files } from './plan.cases.ts';

const pom = (...artifacts: readonly string[]): string =>
  `<project><parent><groupId>org.springframework.boot</groupId></parent>${artifacts.map((each) => `<artifactId>${each}</artifactId>`).join('')}</project>`;
const properties = 'src/main/resources/application.properties';
const yaml = 'src/main/resources/application.yml';

function declare(files: Files): { services: string[]; env: Record<string, string> } {
  const { settings } = mergePlatforms(createMemoryTree(files), undefined, sampleInput());
  return {
    services: (settings?.services ?? []).map(({ name, type }) => `${name} ${type}`),
    env: Object.fromEntries((settings?.run?.env ?? []).map(({ name, value }) => [name, value])),
  };
}

const dockerfile = (files: Files): string => makePlan(createMemoryTree(files), sampleInput()).dockerfile ?? '';
const databaseUrl = (options: string): string =>
  `mysql://\${{services.db.host}}:\${{services.db.port}}/\${{services.db.database}}${options}`;

test('gives a Spring Boot app the MySQL that its settings look for on the own machine', () => {
  const declared = declare({
    'pom.xml': pom('mysql-connector-java'),
    [properties]:
      '#spring.datasource.url=jdbc:h2:mem:x\nspring.datasource.url= jdbc:mysql://localhost:3306/testdb?useSSL=true&serverTimezone=UTC\nspring.datasource.username= root\n',
  });
  assert.deepEqual(declared, {
    services: ['db mysql'],
    env: {
      SPRING_DATASOURCE_URL: `jdbc:${databaseUrl('?serverTimezone=UTC&useSSL=false&allowPublicKeyRetrieval=true')}`,
      SPRING_DATASOURCE_USERNAME: '${{services.db.user}}',
      SPRING_DATASOURCE_PASSWORD: '${{services.db.password}}',
    },
  });
});

test.each([
  ['YAML', 'spring:\n  datasource:\n    url: jdbc:postgresql://localhost:5432/shop\n'],
  ['a default', 'spring:\n  datasource:\n    url: ${DB_URL:jdbc:postgresql://${DB_HOST:localhost}:5432/shop}\n'],
  ['the name of a container', 'spring.datasource:\n  url: jdbc:postgresql://postgres:5432/shop\n'],
  [
    'a document for another profile',
    'spring.datasource.url: jdbc:postgresql://localhost/shop\n---\nspring.config.activate.on-profile: test\nspring.datasource.url: jdbc:h2:mem:x\n',
  ],
])('finds PostgreSQL in %s', (_, text) => {
  const { services, env } = declare({ 'pom.xml': pom('postgresql'), [yaml]: text });
  assert.deepEqual(services, ['db postgres']);
  assert.match(env['SPRING_DATASOURCE_URL'] ?? '', /^jdbc:postgresql:\/\/\$\{\{services\.db\.host\}\}/);
});

test('reads the profile that the settings activate', () => {
  const files = {
    'pom.xml': pom('postgresql'),
    [properties]: 'spring.profiles.active=${PROFILE:dev}\nspring.datasource.url=jdbc:h2:mem:x\n',
    'src/main/resources/application-dev.properties': 'spring.datasource.url=jdbc:postgresql://localhost/x\n',
  };
  assert.deepEqual(declare(files).services, ['db postgres']);
});

test.each([
  ['a file of H2', 'jdbc:h2:file:./data/x'],
  ['a public host', 'jdbc:mysql://db.example.com:3306/x'],
  ['an address of a private network', 'jdbc:mysql://10.243.136.57:3306/x'],
  ['Oracle', 'jdbc:oracle:thin:@localhost:1521:x'],
])('leaves %s to the author', (_, url) => {
  const declared = declare({ 'pom.xml': pom('mysql-connector-j'), [properties]: `spring.datasource.url=${url}\n` });
  assert.deepEqual(declared, { services: [], env: {} });
});

test('gives MongoDB and Redis to an app that has their starters and names no host elsewhere', () => {
  const declared = declare({
    'pom.xml': pom('spring-boot-starter-data-mongodb', 'spring-boot-starter-data-redis'),
    [properties]: 'spring.redis.host=127.0.0.1\n',
  });
  assert.deepEqual(declared.services, ['mongo mongo', 'redis redis']);
  assert.equal(declared.env['SPRING_DATA_MONGODB_URI'], '${{services.mongo.url}}');
  assert.equal(declared.env['SPRING_REDIS_URL'], '${{services.redis.url}}');
  const elsewhere = {
    'pom.xml': pom('spring-boot-starter-data-mongodb'),
    [properties]: 'spring.data.mongodb.uri=mongodb+srv://u:p@x.mongodb.net/y\n',
  };
  assert.deepEqual(declare(elsewhere).services, []);
});

test('uses the Maven of the image if the one of the wrapper cannot be fetched, and reports it', () => {
  const text = dockerfile({ 'pom.xml': pom(), mvnw: '', [properties]: '' });
  assert.match(
    text,
    /\{ env -u MAVEN_CONFIG sh \.\/mvnw --version \|\| \{ echo "moorage-warning: maven-wrapper mvnw"; printf '#!\/bin\/sh\\nexec mvn "\$@"\\n' > mvnw; \}; \} && env -u MAVEN_CONFIG sh \.\/mvnw --batch-mode/,
  );
});

test('opens the compiler to Lombok, whose older versions need it since Java 16', () => {
  const option = '--add-opens=jdk.compiler/com.sun.tools.javac.processing=ALL-UNNAMED';
  assert.ok(dockerfile({ 'pom.xml': pom('lombok'), [properties]: '' }).includes(option));
  assert.ok(!dockerfile({ 'pom.xml': pom(), [properties]: '' }).includes(option));
});
