// The corpus of addresses that lead inside, in all the ways in which they have been written to get past a check.
import { networkInterfaces } from 'node:os';

/** Names that the resolver of the tests knows. All lead inside, at least with one of their addresses. */
export const innerNames: Readonly<Record<string, readonly string[]>> = {
  'loopback.example.com': ['127.0.0.1'],
  'loopback6.example.com': ['::1'],
  'mapped.example.com': ['::ffff:127.0.0.1'],
  'nat64.example.com': ['64:ff9b::7f00:1'],
  'one-of-two.example.com': ['93.184.215.14', '127.0.0.1'],
  'one-of-two6.example.com': ['2606:4700::1111', '::1'],
  'metadata.example.com': ['169.254.169.254'],
  'own.example.com': ownAddresses(),
  'unspecified.example.com': ['0.0.0.0'],
  '127.0.0.1.nip.example.com': ['127.0.0.1'],
  'xn--bcher-kva.example.com': ['10.0.0.1'],
  // What a resolver with the search domains of a pod would make of it.
  'kubernetes.default': ['10.96.0.1'],
  // A Cyrillic letter in it.
  'xn--lcalhost-nbh.com': ['127.0.0.1'],
};

/** Every address in the corpus leads to this port, where a listener counts. */
export function innerUrls(port: number): string[] {
  return [...new Set([...hosts(port), ...oddities(port)])];
}

/** Addresses of this machine that are not loopback: those of its pods' bridge among them. */
export function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((list) => list ?? []).filter(({ internal, address }) => !internal && !address.startsWith('fe80')).map(({ address }) => address);
}

function hosts(port: number): string[] {
  const literals = [
    '127.0.0.1', '127.1', '127.0.1', '127.127.127.127', '127.255.255.254', '2130706433', '0x7f000001', '0x7F.1', '0x7f.0x0.0x0.0x1', '017700000001', '0177.0.0.1', '0177.0.0.01', '00000177.1', '127.0.0.1.', '127.0x1',
    '0', '0.0.0.0', '0x0', '00.0', '0.1.2.3',
    '１２７.0.0.1', '①②⑦.⓪.⓪.①', '127。0。0。1', '127．0．0．1', '127｡0｡0｡1', '%31%32%37.0.0.1',
    '10.0.0.1', '10.96.0.1', '10.244.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', '3232235777', '0xc0a80101',
    '169.254.169.254', '2852039166', '0xa9fea9fe', '0251.0376.0251.0376', '169.254.42534', '100.100.100.200', '100.64.0.1', '168.63.129.16.local',
    '192.0.0.192', '192.0.2.2', '198.18.0.1', '198.51.100.7', '203.0.113.9', '192.88.99.1', '224.0.0.1', '239.255.255.250', '240.0.0.1', '255.255.255.255',
    '[::1]', '[::]', '[0:0:0:0:0:0:0:1]', '[0000::0001]', '[::127.0.0.1]', '[::7f00:1]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[0:0:0:0:0:ffff:127.0.0.1]', '[::ffff:0:127.0.0.1]', '[::ffff:169.254.169.254]', '[::ffff:a9fe:a9fe]',
    '[64:ff9b::127.0.0.1]', '[64:ff9b::a00:1]', '[64:ff9b::169.254.169.254]', '[64:ff9b:1::7f00:1]', '[2002:7f00:1::]', '[2002:a00:1::1]', '[2002:c0a8:101::]', '[2001:0:7f00:1::]', '[2001:0:4136:e378:8000:63bf:80ff:fffe]',
    '[fe80::1]', '[fec0::1]', '[fc00::1]', '[fd00::2]', '[fd00:ec2::254]', '[ff02::1]', '[2001:db8::1]', '[3fff::1]', '[100::1]', '[5f00::1]', '[2606:4700::5efe:7f00:1]', '[2606:4700::200:5efe:a00:1]',
    'localhost', 'LOCALHOST', 'localhost.', 'localhost..', 'LoCaLhOsT', 'ⓛⓞⓒⓐⓛⓗⓞⓢⓣ', '%6c%6f%63%61%6c%68%6f%73%74', 'foo.localhost', 'a.b.localhost.', 'localhost.localdomain', 'ip6-localhost', 'moorage.localhost',
    'kubernetes', 'kubernetes.default.svc', 'kubernetes.default.svc.cluster.local', 'kubernetes.default.svc.cluster.local.', 'moorage-api.moorage.svc', 'metadata.google.internal', 'metadata.google.internal.', 'instance-data.ec2.internal', 'printer.local', 'router.lan', 'nas.home.arpa', 'api.corp', 'lоcalhost', 'lоcalhost.com',
    ...Object.keys(innerNames), 'bücher.example.com', 'LOOPBACK.example.com', 'loopback.example.com.', 'loopback。example。com',
  ];
  return [...literals, ...ownAddresses().map((address) => (address.includes(':') ? `[${address}]` : address))].map((host) => `http://${host}:${port}/`);
}

function oddities(port: number): string[] {
  return [
    `https://127.0.0.1:${port}/`, `HTTP://127.0.0.1:${port}/`, `http:127.0.0.1:${port}`, `http:/127.0.0.1:${port}/`, `http:///127.0.0.1:${port}/`, `http:\\\\127.0.0.1:${port}\\`, `http://loc\talhost:${port}/`, ` http://127.0.0.1:${port}/ `, `\u0000http://127.0.0.1:${port}/`,
    `http://127.0.0.1:${port}\\@example.com/`, `http://example.com@127.0.0.1:${port}/`, `http://user:word@127.0.0.1:${port}/`, `http://example.com:80@127.0.0.1:${port}/`, `http://127.0.0.1:${port}#@example.com/`, `http://127.0.0.1:${port}?@example.com/`, `http://127.0.0.1:0${port}/`,
    `http://127.0.0.1%00.example.com:${port}/`, `http://[::1%25lo]:${port}/`, `http://[fe80::1%25eth0]:${port}/`, `http://[::1]:${port}:80/`, `http://127.0.0.1:${port}:80/`, `http://%5B::1%5D:${port}/`,
    `//127.0.0.1:${port}/`, `127.0.0.1:${port}`, `localhost:${port}`, `ws://127.0.0.1:${port}/`, `ftp://127.0.0.1:${port}/`, `gopher://127.0.0.1:${port}/_GET`, `dict://127.0.0.1:${port}/`, `ldap://127.0.0.1:${port}/`, `tftp://127.0.0.1:${port}/`, `jar:http://127.0.0.1:${port}!/`, `view-source:http://127.0.0.1:${port}/`,
    `blob:http://127.0.0.1:${port}/1`, 'file:///etc/passwd', 'file://localhost/etc/passwd', 'data:text/html,<iframe src="http://127.0.0.1">', 'javascript:fetch("http://127.0.0.1")', 'about:blank', 'http://', 'https://:80',
    'http://example.com:22/', 'http://example.com:6443/', 'http://example.com:10250/', 'http://example.com:0/',
  ];
}
