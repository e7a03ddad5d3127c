// A guard against web pages of others that speak MCP with a server on the visitor's machine or network (DNS rebinding).
import {
  hostHeaderValidationResponse,
  localhostAllowedHostnames,
  originValidationResponse,
} from '@modelcontextprotocol/server';

/** Rejects a request whose Host is not ours, or that a page of another origin sends. Programs send no Origin. */
export function originGuard(baseUrl: string): (request: Request) => Response | undefined {
  const hosts = [...new Set([new URL(baseUrl).hostname, ...localhostAllowedHostnames()])];
  return (request) => hostHeaderValidationResponse(request, hosts) ?? originValidationResponse(request, hosts);
}
