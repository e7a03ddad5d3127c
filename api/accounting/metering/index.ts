// What the rest of the API uses of this room: access logs of gateways in, usage events out.
export { type MeteringSettings, readMeteringSettings } from './config.ts';
export { internalProblems } from './problems.ts';
export { type Metering, startMetering } from './start.ts';
export { rollUpUses } from './store/roll-up.ts';
