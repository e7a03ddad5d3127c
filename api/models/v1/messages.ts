// The messages of a chat completion as they are passed on and priced: nothing in them has a cost without an upper limit.
import type { FieldError } from '../../../lib/problem.ts';
import type { Prompt } from '../../billing/index.ts';
import { createValidationProblem } from '../../http/index.ts';
import { imageFault } from '../conversation/images.ts';
import type { ChatMessage, ChatPart, ChatRequest } from './request.ts';

/** Messages that the router gets, with images in one form. @throws Problem (invalid-request) that names each image that is refused */
export function readMessages(messages: readonly ChatMessage[]): ChatMessage[] {
  const errors: FieldError[] = [];
  const read = messages.map((message, index) => {
    const { content } = message;
    if (!Array.isArray(content)) return message;
    const parts = content.map((part, at) => readPart(part, `messages.${index}.content.${at}`, errors));
    return { ...message, content: parts } as ChatMessage;
  });
  if (errors.length > 0) throw createValidationProblem(errors);
  return read;
}

function readPart(part: ChatPart, field: string, errors: FieldError[]): ChatPart {
  if (part.type !== 'image_url') return part;
  const { image_url: image } = part;
  const { url, detail = null } = typeof image === 'string' ? { url: image } : image;
  const fault = imageFault(url);
  if (fault !== undefined)
    errors.push({
      in: 'body',
      field: typeof image === 'string' ? `${field}.image_url` : `${field}.image_url.url`,
      message: fault,
      fix: 'Send a PNG, JPEG, WebP or GIF image by https or as a data URL.',
    });
  return { type: 'image_url', image_url: detail === null ? { url } : { url, detail } };
}

/** What the request is priced by: all of it as JSON, so that tools and schemas count too, but images as images. */
export function promptOf({ tools, functions, response_format }: ChatRequest, messages: readonly ChatMessage[]): Prompt {
  const schemas = [tools, functions, response_format].filter((one) => one !== undefined && one !== null);
  const isImage = ({ type }: ChatPart): boolean => type === 'image_url';
  return {
    texts: [
      ...messages.map(({ content, ...rest }) =>
        JSON.stringify({
          ...rest,
          content: Array.isArray(content) ? content.filter((part) => !isImage(part)) : content,
        }),
      ),
      JSON.stringify(schemas),
    ],
    images: messages.flatMap(({ content }) => (Array.isArray(content) ? content.filter(isImage) : [])).length,
    schemas: schemas.length,
  };
}
