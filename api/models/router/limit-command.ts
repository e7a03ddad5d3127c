// `node api/models/router/limit-command.ts`: reports what the router itself allows the platform key to spend, and sets a limit where
// it has none. Ends with 1 where there is none afterwards.
import { readCommandLine, UsageError } from '../../../lib/command-line.ts';
import { readModelSettings } from '../config.ts';
import { RouterClient } from './client.ts';

const usage = `usage: node api/models/router/limit-command.ts [--set USD | --ensure]

  --set USD  limits the platform key to so many USD a day, at the router
  --ensure   the same where it has no limit, to a fifth more than MOORAGE_DAILY_CAP_USD

Setting one needs MOORAGE_ROUTER_BILL_KEY: a management key of OpenRouter, or a key of an administrator of LiteLLM. The router
is read from the environment, as the API reads it. Ends with 1 where the key has no limit that can be seen.`;

const settings = readModelSettings();
const chosen = readCommandLine(
  { usage, options: { set: { type: 'string' }, ensure: { type: 'boolean', default: false } } },
  ({ values: { set, ensure } }) => {
    if (set !== undefined && !(Number(set) > 0)) throw new UsageError('--set must be a number of USD above 0');
    return { usd: set === undefined ? undefined : Number(set), ensure };
  },
);

/** What is printed, and whether the key has a limit. */
async function applyLimit(router: RouterClient): Promise<{ text: string; isLimited: boolean }> {
  const before = await router.platformLimit();
  const usd =
    chosen.usd ??
    (chosen.ensure && before.outcome !== 'limited' ? Number((settings.dailyCap * 12n) / 10n) / 1e12 : undefined);
  const fault = usd === undefined ? undefined : await router.limitPlatform(usd);
  const limit = usd === undefined ? before : await router.platformLimit();
  if (limit.outcome === 'limited')
    return {
      text: `the router limits the platform key to ${limit.usd} USD${limit.per === undefined ? '' : ` (${limit.per})`}`,
      isLimited: true,
    };
  const found =
    limit.outcome === 'unlimited' ? 'the router has no limit on the platform key' : `not known: ${limit.why}`;
  return {
    text: `${found}${fault === undefined ? '' : `, and none was set: ${fault}`}. To set one, ${router.limitAdvice}.`,
    isLimited: false,
  };
}

if (settings.router === undefined) {
  process.stdout.write('no model router is configured\n');
} else {
  const router = new RouterClient(settings.router, { callMs: settings.callMs });
  const { text, isLimited } = await applyLimit(router);
  process.stdout.write(`${text}\n`);
  if (!isLimited) process.exitCode = 1;
  await router.close();
}
