// What the rest of the API uses of this room: access logs of gateways in, usage events out.
export { type MeteringSettings, readMeteringSettings } from './config.ts';
export { type Metering, startMetering } from './start-metering.ts';
export { rollUpUses } from './usage-store.ts';
