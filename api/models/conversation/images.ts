// Which images a model may be sent: those whose cost has an upper limit, so nothing that a model may take for a film or a document.

/** Maximum size of an image that is sent as a data URL, in bytes. */
export const maxImageBytes = 3 * 1024 * 1024;
const maxUrlLength = 4_096;

const dataUrl = /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}$/;
/** Routers take from the end of a path what is behind an address, and pass on films and documents at their own price. */
const notImages =
  /\.(?:3gpp?|aac|aiff?|avi|csv|docx?|flac|flv|html?|m4a|m4v|mkv|mov|mp3|mp4|mpe?g|mpga|oga|ogg|opus|pdf|pptx?|txt|wav|webm|wmv|xlsx?)$/i;

/** What is wrong with the address of an image, as a predicate; undefined where nothing is. */
export function imageFault(url: string): string | undefined {
  if (url.startsWith('data:')) return dataFault(url);
  if (url.length > maxUrlLength) return `must be at most ${maxUrlLength} characters long`;
  const address = URL.canParse(url) ? new URL(url) : undefined;
  if (address?.protocol !== 'https:') return 'must be an https URL, or a data URL like data:image/png;base64,…';
  if (address.username !== '' || address.password !== '') return 'must not contain a user name or a password';
  return notImages.test(address.pathname) ? 'must be the address of an image: PNG, JPEG, WebP or GIF' : undefined;
}

function dataFault(url: string): string | undefined {
  const comma = url.indexOf(',');
  const bytes = Math.floor(((url.length - comma - 1) * 3) / 4);
  if (bytes > maxImageBytes + 2) return `must be an image of at most ${maxImageBytes} bytes`;
  return dataUrl.test(url)
    ? undefined
    : 'must be base64 of a PNG, JPEG, WebP or GIF image, like data:image/png;base64,…';
}
