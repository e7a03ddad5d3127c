// Draws a specification with Vega. Runs in a worker process. Expressions are interpreted, never compiled, patterns in
// them are matched by RE2, and nothing is loaded.
import { takeRefusal } from '../../patterns/all-patterns.ts';
import * as vega from 'vega';
import { expressionInterpreter } from 'vega-interpreter';
import { compile, type TopLevelSpec } from 'vega-lite';
import { Problem } from '../../../../lib/problem.ts';
import { unprocessable } from '../../problems.ts';
import { draw, type PictureOptions } from '../../svg/draw.ts';
import type { Picture } from '../../svg/picture.ts';

const longestSide = 8_000;
const maxWarnings = 20;

interface Input extends PictureOptions {
  readonly spec: Record<string, unknown>;
  readonly language: 'vega' | 'vega-lite';
}

export default async function chart({ spec, language, ...wanted }: Input): Promise<Picture> {
  const warnings: string[] = [];
  const refused: string[] = [];
  const logger = loggerOf(warnings);
  takeRefusal();
  try {
    const full =
      language === 'vega' ? (spec as unknown as vega.Spec) : compile(spec as unknown as TopLevelSpec, { logger }).spec;
    const view = new vega.View(vega.parse(full, {}, { ast: true }), {
      expr: expressionInterpreter,
      renderer: 'none',
      loader: loaderOf(refused),
      logger,
    });
    await view.runAsync();
    checkSize(view.width(), view.height());
    const svg = await view.toSVG();
    view.finalize();
    refusePatterns();
    if (refused.length > 0)
      throw new Problem(
        unprocessable,
        `The specification refers to ${refused[0]?.slice(0, 200) ?? ''}, which is not loaded. Put the data into data.values.`,
      );
    return draw(svg, wanted, warnings);
  } catch (error) {
    if (error instanceof Problem) throw error;
    refusePatterns();
    throw new Problem(
      unprocessable,
      `The chart in spec cannot be drawn: ${error instanceof Error ? error.message.slice(0, 500) : String(error).slice(0, 500)}`,
      { cause: error },
    );
  }
}

/** Vega reports a pattern that cannot be made as invalid, or draws without it. */
function refusePatterns(): void {
  const refusal = takeRefusal();
  if (refusal !== undefined) throw refusal;
}

function checkSize(width: number, height: number): void {
  if (!(Math.max(width, height) <= longestSide))
    throw new Problem(
      unprocessable,
      `The chart in spec is ${width} × ${height} pixels; the maximum is ${longestSide} per side.`,
    );
}

/** Refuses every address, and remembers it: Vega itself would go on without the data. */
function loaderOf(refused: string[]): vega.Loader {
  const refuse = (uri: string): Promise<never> => {
    refused.push(uri);
    return Promise.reject(new Error(`${uri} is not loaded`));
  };
  const loader = vega.loader();
  const link = loader.sanitize.bind(loader);
  return {
    load: refuse,
    http: refuse,
    file: refuse,
    sanitize: (uri, options) => {
      if ((options as { context?: string }).context !== 'href') return refuse(uri);
      if (/^(https?:\/\/|mailto:)/i.test(uri)) return link(uri, options);
      // Vega waits for every link, and breaks where one is rejected.
      refused.push(uri);
      return Promise.resolve({ href: '#' });
    },
  };
}

function loggerOf(warnings: string[]): vega.LoggerInterface {
  const logger: vega.LoggerInterface = {
    level: (level?: number) => (level === undefined ? vega.Warn : logger),
    error: (...args: readonly unknown[]) => note(args),
    warn: (...args: readonly unknown[]) => note(args),
    info: () => logger,
    debug: () => logger,
  };
  const note = (args: readonly unknown[]): vega.LoggerInterface => {
    if (warnings.length < maxWarnings)
      warnings.push(
        args
          .map((arg) => (arg instanceof Error ? arg.message : String(arg)))
          .join(' ')
          .slice(0, 300),
      );
    return logger;
  };
  return logger;
}
