// The form of a contact, for submissions and for moorage.yaml.
import { z } from 'zod';

/**
 * One line as it is shown: no controls, no line breaks of any kind, nothing that turns the direction of writing.
 * Without classes like \p{Cc}: the pattern stands in the OpenAPI document, and readers in other languages do not know
 * them.
 */
export const oneLine = new RegExp(
  String.raw`^[^\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]*$`,
);
const form = /^([^\s@]+@[^\s@]+\.[^\s@]+|https?:\/\/\S+)$/;

// The length comes first and ends the check: the form of an address takes time that grows with the square of its
// length.
export const contact = z
  .string()
  .max(200, { abort: true })
  .regex(oneLine, 'must not contain control characters')
  .regex(form, 'must be an e-mail address or a URL');
