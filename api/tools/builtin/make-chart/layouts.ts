// How labels get room: nothing is cut, and names that would lie over each other are turned, or thinned out with a warning.
import type { CrowdedAxis, Drawn } from './drawn.ts';

export interface Layout {
  /** Degrees by which names below a chart are turned. */
  readonly angle?: number;
  /** Whether labels may be left out. */
  readonly thin?: boolean;
  readonly warning?: string;
}

type Fields = Readonly<Record<string, unknown>>;

/** The specification with settings of labels, where it has none of its own. */
export function withDefaults(spec: Fields, { angle, thin }: Layout): Fields {
  const config = fieldsOf(spec['config']);
  const turned =
    angle === undefined
      ? {}
      : { labelAngle: angle, labelAlign: 'right', labelBaseline: angle === 270 ? 'middle' : 'top' };
  return {
    ...spec,
    config: {
      ...config,
      axis: { labelLimit: 0, ...fieldsOf(config['axis']) },
      // Numbers and dates that touch each other read as one.
      axisXQuantitative: { labelSeparation: 4, ...fieldsOf(config['axisXQuantitative']) },
      axisXTemporal: { labelSeparation: 4, ...fieldsOf(config['axisXTemporal']) },
      legend: { labelLimit: 0, symbolLimit: 0, titleLimit: 0, ...fieldsOf(config['legend']) },
      ...(angle === undefined ? {} : { axisXDiscrete: { ...fieldsOf(config['axisXDiscrete']), ...turned } }),
      ...(thin === true
        ? { axisDiscrete: { ...fieldsOf(config['axisDiscrete']), labelOverlap: 'greedy', labelSeparation: 2 } }
        : {}),
    },
  };
}

/** Layouts to try one after the other, until labels no longer collide. */
export function layoutsFor({ crowded }: Drawn): Layout[] {
  if (crowded.length === 0) return [];
  const steps = crowded.filter(({ axis }) => axis === 'x').map(({ step }) => step);
  const room = Math.min(...steps);
  const [worst] = crowded.toSorted((a, b) => a.step - b.step);
  const thin: Layout = { thin: true, ...(worst === undefined ? {} : { warning: leftOut(worst) }) };
  if (steps.length === 0) return [thin];
  return [...(room >= 18 ? [{ angle: -45 }] : []), ...(room >= 11 ? [{ angle: 270 }] : []), thin];
}

const leftOut = ({ axis, labels }: CrowdedAxis): string =>
  `Some labels of the ${axis} axis are left out: ${labels} would lie over each other. Set a larger ${axis === 'y' ? 'height' : 'width'} to have them all.`;

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}
