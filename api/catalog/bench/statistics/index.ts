// Statistics of benchmarks: intervals, paired differences and costs.
export { costEach, costOfSuccess } from './cost-of-success.ts';
export { benjaminiHochberg } from './false-discovery.ts';
export { type Difference, pairedDifference, type Passes, type TaskPair } from './paired.ts';
export { runsToDecide } from './runs-to-decide.ts';
export { type Interval, wilsonInterval } from './wilson.ts';
