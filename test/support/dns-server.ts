// A DNS server on loopback, whose records a test changes while it answers.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { AUTHORITATIVE_ANSWER, decode, encode, type Answer } from 'dns-packet';

export interface DnsServer {
  /** Like 127.0.0.1:5353. */
  readonly address: string;
  /** Values by type and name, like `TXT _moorage.shop.example.com`. A name without any does not exist. */
  readonly records: Map<string, string>;
  /** Names whose queries fail with SERVFAIL. */
  readonly failing: Set<string>;
  stop(): Promise<void>;
}

const [serverFailure, noSuchName] = [2, 3];

export async function startDnsServer(host = '127.0.0.1', port = 0): Promise<DnsServer> {
  const socket = createSocket('udp4');
  const records = new Map<string, string>();
  const failing = new Set<string>();
  socket.on('message', (message, { port: clientPort, address }) => {
    const { id, questions = [] } = decode(message);
    const name = questions[0]?.name.toLowerCase() ?? '';
    const found = ['TXT', 'CNAME'].flatMap((type): Answer[] => {
      const data = records.get(`${type} ${name}`);
      return data === undefined ? [] : [{ type: type as 'TXT' | 'CNAME', name, ttl: 0, data }];
    });
    // An alias answers for every type, as RFC 1034 says.
    const answers = found.filter(({ type }) => type === questions[0]?.type || type === 'CNAME');
    const exists = [...records.keys()].some((key) => key.endsWith(` ${name}`) || key.endsWith(`.${name}`));
    const code = failing.has(name) ? serverFailure : exists ? 0 : noSuchName;
    const flags = AUTHORITATIVE_ANSWER | code;
    socket.send(
      encode({ type: 'response', id, flags, questions, answers: code === 0 ? answers : [] }),
      clientPort,
      address,
    );
  });
  socket.bind(port, host);
  await once(socket, 'listening');
  return {
    address: `${host}:${socket.address().port}`,
    records,
    failing,
    async stop() {
      socket.close();
      await once(socket, 'close');
    },
  };
}
