// Renders the last stage of every image that only serves files: nginx, unprivileged.
import { languages } from '../../../../crds/languages.ts';
import { renderLinkedCopy } from '../recipe.ts';

export interface Site {
  readonly port: number;
  /** Folder in the build context, or in the stage. */
  readonly from: string;
  /** Stage to copy from; if absent, the build context. */
  readonly stage?: string;
  /** Paths without a file return index.html (single-page apps). */
  readonly fallback: boolean;
  /** The site includes a 404.html. */
  readonly notFoundPage?: boolean;
}

/** Renders the stage. nginx writes only to /tmp and its output streams, so it runs as any user. */
export function serveFiles(site: Site): string[] {
  const flags = site.stage === undefined ? [] : [`--from=${site.stage}`];
  return [
    `FROM ${languages.static.images[0].image}`,
    "COPY <<'EOF' /etc/moorage/nginx.conf",
    ...renderConfiguration(site),
    'EOF',
    renderLinkedCopy([site.from === '.' ? './' : `${site.from}/`], '/srv/site/', ...flags),
    'USER 1000:1000',
    `ENV PORT=${site.port}`,
    `EXPOSE ${site.port}`,
    'STOPSIGNAL SIGQUIT',
    'ENTRYPOINT []',
    'CMD ["nginx", "-e", "stderr", "-c", "/etc/moorage/nginx.conf", "-g", "daemon off;"]',
  ];
}

function renderConfiguration(site: Site): string[] {
  // With a fallback, a folder is not a page. Without one, a folder's index is, and relative links in it require the
  // redirect to "folder/".
  const order = site.fallback ? '$uri $uri.html $uri/index.html /index.html' : '$uri $uri/ $uri.html =404';
  return [
    'worker_processes 1;',
    'pid /tmp/nginx.pid;',
    'error_log stderr warn;',
    'events { worker_connections 1024; }',
    'http {',
    '  include /etc/nginx/mime.types;',
    '  default_type application/octet-stream;',
    '  charset utf-8;',
    ...['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((each) => `  ${each}_temp_path /tmp/${each};`),
    '  access_log off;',
    '  server_tokens off;',
    '  sendfile on;',
    '  absolute_redirect off;',
    '  gzip on;',
    '  gzip_vary on;',
    '  gzip_types text/css text/javascript application/javascript application/json application/wasm image/svg+xml text/plain;',
    '  server {',
    `    listen ${site.port};`,
    '    root /srv/site;',
    ...(site.notFoundPage === true && !site.fallback ? ['    error_page 404 /404.html;'] : []),
    String.raw`    location ~ /\.(?!well-known/) { return 404; }`,
    `    location / { try_files ${order}; }`,
    '  }',
    '}',
  ];
}
