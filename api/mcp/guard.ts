// Keeps web pages of others from speaking MCP with a server on the visitor's own machine or network (DNS rebinding).
import {
  hostHeaderValidationResponse,
  localhostAllowedHostnames,
  originValidationResponse,
} from '@modelcontextprotocol/server';

/** Refuses a request whose Host is not ours, or that a page of another origin sends. Programs send no Origin. */
export function originGuard(baseUrl: string): (request: Request) => Response | undefined {
  const hosts = [...new Set([new URL(baseUrl).hostname, ...localhostAllowedHostnames()])];
  return (request) => hostHeaderValidationResponse(request, hosts) ?? originValidationResponse(request, hosts);
}
