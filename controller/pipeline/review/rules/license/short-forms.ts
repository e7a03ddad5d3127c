// Reads the licence that somebody names in words: "MIT License", "licensed under the Apache License, Version 2.0", a link.
import { spdxId } from './expression.ts';

type Form = readonly [RegExp, string];

/** The first that fits counts, so what is more exact comes first. Hyphens and underscores are read as spaces. */
const forms: readonly Form[] = [
  [/\bsspl\b|server side public/, 'SSPL-1.0'],
  [/\bbusl\b|business source/, 'BUSL-1.1'],
  [/elastic license/, 'Elastic-2.0'],
  [/(?:cc|creative ?commons|licenses\/)[ /]?by[ /-]?nc(?:[ /-]?(?:sa|nd))?|noncommercial/, 'CC-BY-NC-4.0'],
  [/(?:cc|licenses\/)[ /]?by[ /]?nd\b/, 'CC-BY-ND-4.0'],
  [/\ba(?:ffero )?gpl ?(?:v|version )?3|affero general public license|\bagpl\b|licenses\/agpl/, 'AGPL-3.0-or-later'],
  [/\blgpl ?(?:v|version )?2\.1/, 'LGPL-2.1-or-later'],
  [/\blgpl ?(?:v|version )?2/, 'LGPL-2.0-or-later'],
  [/\blgpl\b|\blgplv?3|lesser general public license/, 'LGPL-3.0-or-later'],
  [
    /\bgpl ?(?:v|version )?2|general public license,? (?:v|version )2|licenses\/(?:old licenses\/)?gpl 2/,
    'GPL-2.0-or-later',
  ],
  [/\bgpl ?(?:v|version )?3|general public license|\bgnu gpl\b|\bgpl\b|licenses\/gpl/, 'GPL-3.0-or-later'],
  [/apache(?: software)?(?: license)?,? ?(?:v|version )?\.? ?1\.1/, 'Apache-1.1'],
  [/apache ?2|apache(?: software)? license|licenses\/license 2\.0|\basl ?2|\bapache\b/, 'Apache-2.0'],
  [/\bmpl ?(?:v|version )?1\.1/, 'MPL-1.1'],
  [/mozilla public license|\bmpl\b/, 'MPL-2.0'],
  [/\beupl\b|european union public/, 'EUPL-1.2'],
  [/eclipse public license ?(?:v|version )?1|\bepl ?1/, 'EPL-1.0'],
  [/eclipse public license|\bepl\b/, 'EPL-2.0'],
  [/\bbsd ?(?:0|zero)|\b0 ?bsd\b|zero clause bsd/, '0BSD'],
  [/\bbsd ?2|2 clause bsd|simplified bsd|freebsd/, 'BSD-2-Clause'],
  [/\bbsd ?4|4 clause bsd|original bsd/, 'BSD-4-Clause'],
  [/\bbsd\b/, 'BSD-3-Clause'],
  [/\bisc\b/, 'ISC'],
  [/\bunlicense\b(?!d)|public domain/, 'Unlicense'],
  [/\bcc ?0\b|publicdomain\/zero/, 'CC0-1.0'],
  [/(?:cc|creative ?commons attribution|licenses\/)[ /]?(?:by[ /]?sa|share ?alike)/, 'CC-BY-SA-4.0'],
  [/(?:\bcc|licenses\/)[ /]?by\b|creative ?commons attribution/, 'CC-BY-4.0'],
  [/\bwtfpl\b/, 'WTFPL'],
  [/\bzlib\b/, 'Zlib'],
  [/boost software license|\bbsl 1\.0\b/, 'BSL-1.0'],
  [/artistic license ?2|\bartistic 2/, 'Artistic-2.0'],
  [/\bpython software foundation|\bpsf/, 'PSF-2.0'],
  [/\bmulan psl/, 'MulanPSL-2.0'],
  [/\bmit\b|\bexpat\b/, 'MIT'],
];

const longest = 600;

/** The SPDX id of the licence that a short text names. */
export function namedLicense(text: string): string | undefined {
  const short = text.slice(0, longest);
  const whole = spdxId(short);
  if (whole !== undefined) return whole;
  const plain = short
    .toLowerCase()
    .replace(/licence/g, 'license')
    .replace(/non[-\s]commercial/g, 'noncommercial')
    .replace(/[-_()"'`*[\]<>]/g, ' ')
    .replace(/\s+/g, ' ');
  return forms.find(([pattern]) => pattern.test(plain))?.[1];
}
