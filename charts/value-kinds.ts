// The kinds of value that the chart's values are made of.
import { z } from 'zod';

export const quantity = z.string().regex(/^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$/);
/** An amount of disk space, or a share of the disk. */
export const reserve = z.string().regex(/^([0-9]+(\.[0-9]+)?(Mi|M|Gi|G|Ti|T)?|[1-9]?[0-9]%)$/);
export const duration = z
  .string()
  .regex(/^([0-9]+h)?([0-9]+m)?([0-9]+s)?$/)
  .min(2)
  .describe('Duration, such as 90s, 20m or 2h.');
export const cidr = z
  .string()
  .regex(/^[0-9a-fA-F:.]+\/[0-9]{1,3}$/)
  .describe('CIDR, such as 10.0.0.0/8.');
export const labels = z.record(z.string(), z.string()).describe('Labels that select a namespace.');
export const port = z.int().min(1).max(65_535);
export const name = z
  .string()
  .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/)
  .max(253);
export const host = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$/)
  .describe('host or host:port, in lower case.');
export const domain = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/)
  .max(200);
export const labelKey = z
  .string()
  .regex(/^[A-Za-z0-9]([-A-Za-z0-9._/]*[A-Za-z0-9])?$/)
  .max(317);
export const allowEmpty = <Schema extends z.ZodType>(schema: Schema): z.ZodUnion<readonly [Schema, z.ZodLiteral<''>]> =>
  z.union([schema, z.literal('')]);
/** Amount of money in USD. */
/** As spec.models.dailyBudgetUsd of a HostedApp has it. */
export const dailyBudget = z.string().regex(/^(0|[1-9][0-9]{0,4})([.][0-9]{1,4})?$/);
export const usd = z.string().regex(/^[0-9]{1,7}(\.[0-9]{1,12})?$/);
export const resources = z.strictObject({
  requests: z.strictObject({ cpu: quantity, memory: quantity }),
  limits: z.strictObject({ cpu: quantity, memory: quantity }),
});

export const workload = {
  replicas: z.int().min(0).max(20).describe('Number of replicas.'),
  resources: resources.describe('Resource requests and limits of each replica.'),
};
