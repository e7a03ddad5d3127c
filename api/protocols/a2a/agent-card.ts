// Builds the A2A agent card: version 1.0, plus the fields that clients of 0.3 look for. It has a skill for each tool
// and each live app.
import { AgentCard, type AgentSkill } from '@a2a-js/sdk';
import type { HostedAppSummary, Tool } from '../../tools/index.ts';
import {
  serviceAuthentication,
  callAppPath,
  serviceDescription,
  serviceName,
  serviceVersion,
} from '../../http/index.ts';
import type { Offer } from '../../apps/index.ts';

export const a2aPath = '/a2a';
export const a2aVersion = '1.0';
/** Served too, for clients that have not upgraded. */
export const olderVersion = '0.3';

const json = 'application/json';

/** Prefix of the ids of skills that stand for apps. */
export const appPrefix = 'app:';

export function buildAgentCard(offer: Offer): AgentCard {
  const { baseUrl, tools, listApps } = offer;
  return {
    name: serviceName,
    description: serviceDescription,
    version: serviceVersion,
    supportedInterfaces: [a2aVersion, olderVersion].map((protocolVersion) => ({
      url: `${baseUrl}${a2aPath}`,
      protocolBinding: 'JSONRPC',
      protocolVersion,
      tenant: '',
    })),
    provider: { organization: serviceName, url: baseUrl },
    documentationUrl: `${baseUrl}/llms.txt`,
    capabilities: { streaming: true, pushNotifications: true, extendedAgentCard: false, extensions: [] },
    securitySchemes: {
      key: {
        scheme: {
          $case: 'httpAuthSecurityScheme',
          value: { scheme: 'bearer', bearerFormat: '', description: serviceAuthentication },
        },
      },
    },
    // The empty alternative means that no credentials are needed.
    securityRequirements: [{ schemes: {} }, { schemes: { key: { list: [] } } }],
    defaultInputModes: [json, 'text/plain'],
    defaultOutputModes: [json, 'text/plain'],
    skills: [
      ...tools.map((tool) => buildToolSkill(tool, offer)),
      ...listApps().map((app) => buildAppSkill(app, baseUrl)),
    ],
    signatures: [],
  };
}

/**
 * Builds the card for the wire. It repeats the endpoint and the key where clients of 0.3 expect them; newer clients
 * ignore these fields.
 */
export function buildCardJson(offer: Offer): Record<string, unknown> {
  const card = buildAgentCard(offer);
  const { securitySchemes, ...rest } = AgentCard.toJSON(card) as { readonly securitySchemes: { readonly key: object } };
  return {
    ...rest,
    url: card.supportedInterfaces[0]?.url,
    preferredTransport: 'JSONRPC',
    protocolVersion: '0.3.0',
    securitySchemes: { key: { ...securitySchemes.key, type: 'http', scheme: 'bearer' } },
    security: [{}, { key: [] }],
  };
}

function buildToolSkill(tool: Tool, { explainOff }: Offer): AgentSkill {
  const unavailable = explainOff(tool);
  return {
    id: tool.name,
    name: tool.title,
    description:
      unavailable === undefined ? tool.description : `${tool.description} Not available here. ${unavailable}`,
    tags: [
      'tool',
      ...(tool.asksModels === true ? ['models'] : []),
      ...(tool.openWorld ? ['internet'] : []),
      ...(tool.long === true ? ['long'] : []),
    ],
    examples: [JSON.stringify({ tool: tool.name, arguments: tool.example })],
    inputModes: [json],
    outputModes: [json, ...(tool.artifacts ?? [])],
    securityRequirements: [],
  };
}

function buildAppSkill(
  { slug, title, description: about, category, url }: HostedAppSummary,
  baseUrl: string,
): AgentSkill {
  return {
    id: `${appPrefix}${slug}`,
    name: title,
    description: `${about === '' ? 'A hosted app.' : about} Open it at ${url}; metered calls go to ${baseUrl}${callAppPath.replace('{slug}', slug)}.`,
    tags: ['hosted-app', ...(category === undefined ? [] : [category])],
    examples: [JSON.stringify({ tool: `${appPrefix}${slug}` })],
    inputModes: [json],
    outputModes: [json],
    securityRequirements: [],
  };
}
