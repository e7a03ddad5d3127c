// Evaluates expressions of configuration files as far as the environment of a build here decides them.
import type { ScriptCall, ScriptModule, ScriptValue } from './javascript.ts';

/** Reads a field of a configuration, through variables, `defineConfig(…)`, functions and spreads. */
export function readPath(value: ScriptValue | undefined, path: readonly string[], module: ScriptModule): ScriptValue[] {
  const [name, ...rest] = path;
  if (value === undefined) return [];
  if (name === undefined) return [value];
  return resolveValues(value, module, true).flatMap((each): ScriptValue[] => {
    if (each.kind !== 'object') return [];
    const field = each.fields.get(name);
    if (field !== undefined) return readPath(field, rest, module);
    return each.spread.flatMap((spread) => readPath(spread, path, module));
  });
}

const maximumSteps = 24;

/**
 * Lists what an expression can be: one value, or both branches of a condition that cannot be decided. With `unwrap`, the
 * first argument of a call stands for its result, as with defineConfig().
 */
export function resolveValues(value: ScriptValue, module: ScriptModule, unwrap = false, steps = 0): ScriptValue[] {
  if (steps > maximumSteps) return [];
  const next: Next = (each) => (each === undefined ? [] : resolveValues(each, module, unwrap, steps + 1));
  switch (value.kind) {
    case 'name':
      return module.variables.has(value.name) ? next(module.variables.get(value.name)) : [value];
    case 'conditional':
      return resolveBranches(decide(value.condition, module), value, next);
    case 'binary':
      return resolveLogic(decide(value.left, module), value, next);
    case 'call':
      return unwrap ? next(value.call.args[0]) : [value];
    case 'function':
      return unwrap ? value.returned.flatMap(next) : [value];
    default:
      return [value];
  }
}

type Next = (each: ScriptValue | undefined) => ScriptValue[];
type OfKind<Kind extends ScriptValue['kind']> = Extract<ScriptValue, { kind: Kind }>;

function resolveBranches(decided: boolean | undefined, value: OfKind<'conditional'>, next: Next): ScriptValue[] {
  if (decided === undefined) return [...next(value.then), ...next(value.otherwise)];
  return next(decided ? value.then : value.otherwise);
}

function resolveLogic(decided: boolean | undefined, value: OfKind<'binary'>, next: Next): ScriptValue[] {
  const { operator, left, right } = value;
  if (operator === '&&') return next(decided === false ? left : right);
  if (operator !== '||' && operator !== '??') return [value];
  if (decided === undefined) return [...next(left), ...next(right)];
  return next(decided ? left : right);
}

type KnownValue = string | boolean | number | undefined;
const unknown = Symbol('unknown');

/** Decides a condition as the build here would; undefined if that takes more than its environment. */
function decide(condition: ScriptValue, module: ScriptModule): boolean | undefined {
  const value = compute(condition, module, 0);
  return value === unknown ? undefined : Boolean(value);
}

/** What the build here has: everything else of process.env is not set. */
const environment: Readonly<Record<string, string>> = { NODE_ENV: 'production', CI: 'true' };
/** Parameters of configuration functions of Vite and Astro. */
const parameters: Readonly<Record<string, string | boolean>> = {
  mode: 'production',
  command: 'build',
  isSsrBuild: false,
};

function compute(value: ScriptValue, module: ScriptModule, steps: number): KnownValue | typeof unknown {
  if (steps > maximumSteps) return unknown;
  const next = (each: ScriptValue): KnownValue | typeof unknown => compute(each, module, steps + 1);
  switch (value.kind) {
    case 'literal':
      return value.value;
    case 'not': {
      const inner = next(value.value);
      return inner === unknown ? unknown : !inner;
    }
    case 'name': {
      const found = module.variables.get(value.name);
      return found === undefined ? readName(value.name) : next(found);
    }
    case 'call':
      // `process.argv.includes('dev')`: the build has no arguments beyond its own.
      return value.call.callee === 'process.argv.includes' ? isBuildArgument(value.call) : unknown;
    case 'binary':
      return computeBinary(value.operator, next(value.left), next(value.right));
    default:
      return unknown;
  }
}

function readName(name: string): KnownValue | typeof unknown {
  const variable = /^(?:process\.env|Bun\.env|env)\.(\w{1,100})$/.exec(name)?.[1];
  return variable === undefined ? (parameters[name] ?? unknown) : environment[variable];
}

function isBuildArgument({ args: [first] }: ScriptCall): boolean {
  return first?.kind === 'literal' && first.value === 'build';
}

const operators: Readonly<Record<string, (left: KnownValue, right: KnownValue) => KnownValue>> = {
  '===': (left, right) => left === right,
  '==': (left, right) => left === right,
  '!==': (left, right) => left !== right,
  '!=': (left, right) => left !== right,
  '&&': (left, right) => (left ? right : left),
  '||': (left, right) => (left ? left : right),
  '??': (left, right) => left ?? right,
};

/** One side decides `&&` and `||` if it is known and short-circuits them. */
function computeBinary(
  operator: string,
  left: KnownValue | typeof unknown,
  right: KnownValue | typeof unknown,
): KnownValue | typeof unknown {
  const sides = [left, right].filter((each) => each !== unknown);
  if (operator === '&&' && sides.some((each) => !each)) return false;
  if (operator === '||' && sides.some(Boolean)) return true;
  if (left === unknown || right === unknown) return unknown;
  const apply = operators[operator];
  return apply === undefined ? unknown : apply(left, right);
}
