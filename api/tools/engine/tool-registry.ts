// The tools by name: finds one, suggests names for a misspelled one, and says whether one is available here.
import { Problem, unknownName } from '../../../lib/problem.ts';
import { offBecause, serviceOff, type OffCauses, type ServiceUrls } from '../services/backing-services.ts';
import { unknownTool } from '../problems.ts';
import type { Tool } from '../tool.ts';

export interface ToolRegistryOptions {
  readonly tools: readonly Tool[];
  readonly urls: ServiceUrls;
  /** Why services are off, where the operator has said it. */
  readonly offCauses?: OffCauses;
  /** What is missing for calling models; undefined where nothing is. */
  readonly modelsMissing: string | undefined;
}

export class ToolRegistry {
  readonly tools: readonly Tool[];
  readonly #options: ToolRegistryOptions;
  readonly #byName: ReadonlyMap<string, Tool>;

  constructor(options: ToolRegistryOptions) {
    this.#options = options;
    this.tools = options.tools;
    this.#byName = new Map(options.tools.map((tool) => [tool.name, tool]));
  }

  /** `others`: names that can be meant as well. @throws Problem (unknown-tool) */
  get(name: string, others: readonly string[] = []): Tool {
    const tool = this.#byName.get(name);
    if (tool === undefined) throw unknown(name, [...this.#byName.keys(), ...others]);
    return tool;
  }

  /** Why a tool is not available here, and which setting enables it; undefined when it is available. */
  offBecause({ needs, asksModels }: Tool): string | undefined {
    if (needs !== undefined && this.#options.urls[needs] === undefined)
      return offBecause(needs, this.#options.offCauses?.[needs]);
    return asksModels === true ? this.#options.modelsMissing : undefined;
  }

  /** @throws Problem (service-off) when the service of this tool is off */
  refuseOff({ needs }: Tool): void {
    if (needs !== undefined && this.#options.urls[needs] === undefined)
      throw new Problem(serviceOff, offBecause(needs, this.#options.offCauses?.[needs]), {
        members: { service: needs },
      });
  }
}

function unknown(name: string, names: readonly string[]): Problem {
  return unknownName(unknownTool, { says: 'Unknown tool', name, names, all: 'GET /t lists all tools.' });
}
