// The messages of a chat completion as they are passed on and priced: nothing in them has a cost without an upper limit.
import type { FieldError } from '../../../lib/problem.ts';
import type { Prompt } from '../../billing/index.ts';
import { invalid } from '../../http/index.ts';
import { imageFault } from '../conversation/images.ts';
import { imagePart, type ChatMessage, type ChatPart, type ChatRequest } from './request.ts';

const kinds: ReadonlySet<string> = new Set(['text', 'image_url', 'refusal']);

/** Parts that the router gets, with images known apart. @throws Problem (invalid-request) that names each part that is refused */
export function readMessages(messages: readonly ChatMessage[]): ChatMessage[] {
  const errors: FieldError[] = [];
  const read = messages.map((message, index) => {
    const { content } = message;
    if (!Array.isArray(content)) return message;
    const parts = content.map((part, at) => readPart(part, `messages.${index}.content.${at}`, errors));
    return { ...message, content: parts };
  });
  if (errors.length > 0) throw invalid(errors);
  return read;
}

function readPart(part: ChatPart, field: string, errors: FieldError[]): ChatPart {
  const refuse = (where: string, message: string, fix: string): ChatPart => {
    errors.push({ in: 'body', field: where, message, fix });
    return part;
  };
  if (!kinds.has(part.type))
    return refuse(
      `${field}.type`,
      `must not be ${part.type.slice(0, 40)}: the cost of such a part has no upper limit`,
      'Send only text and image_url parts.',
    );
  if (part.type !== 'image_url') return part;
  const image = imagePart.safeParse(part['image_url']);
  if (!image.success)
    return refuse(`${field}.image_url`, 'must be an object with a url', 'Send {"url": "https://…"} or a data URL.');
  const { url, detail } = image.data;
  const fault = imageFault(url);
  if (fault !== undefined)
    return refuse(`${field}.image_url.url`, fault, 'Send a PNG, JPEG, WebP or GIF image by https or as a data URL.');
  // Nothing else: routers let a member of an image say that it is a film.
  return { type: 'image_url', image_url: detail === undefined ? { url } : { url, detail } };
}

/** What the request is priced by: all of it as JSON, so that tools and schemas count too, but images as images. */
export function promptOf({ tools, functions, response_format }: ChatRequest, messages: readonly ChatMessage[]): Prompt {
  const schemas = [tools, functions, response_format].filter((one) => one !== undefined && one !== null);
  const isImage = ({ type }: ChatPart): boolean => type === 'image_url';
  return {
    texts: [
      ...messages.map((message) =>
        JSON.stringify(
          Array.isArray(message.content)
            ? { ...message, content: message.content.filter((part) => !isImage(part)) }
            : message,
        ),
      ),
      JSON.stringify(schemas),
    ],
    images: messages.flatMap(({ content }) => (Array.isArray(content) ? content.filter(isImage) : [])).length,
    schemas: schemas.length,
  };
}
