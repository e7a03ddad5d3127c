// The kinds of value that chart values are made of.
import { z } from 'zod';

export const name = z
  .string()
  .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/)
  .max(253);

export const labelKey = z
  .string()
  .regex(/^[A-Za-z0-9]([-A-Za-z0-9._/]*[A-Za-z0-9])?$/)
  .max(317);

export const duration = z
  .string()
  .regex(/^([0-9]+h)?([0-9]+m)?([0-9]+s)?$/)
  .min(2)
  .describe('Duration, such as 90s, 20m or 2h.');

export const quantity = z.string().regex(/^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$/);
