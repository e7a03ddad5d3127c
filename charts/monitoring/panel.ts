// What a panel of a dashboard shows: queries, a unit, and how it is drawn.

/** Units by Grafana's names. */
export type Unit = 'short' | 's' | 'bytes' | 'percentunit' | 'reqps' | 'currencyUSD';

export interface Query {
  /** PromQL. `$__rate_interval` is at least four scrapes. */
  readonly expr: string;
  /** Name of each series, with labels as {{label}}. */
  readonly legend: string;
}

export interface Panel {
  readonly title: string;
  /** What a reader sees here, and what is normal. */
  readonly description: string;
  /** lines: over time; bars: over time, stacked; number: the newest value of each series. */
  readonly kind: 'lines' | 'bars' | 'number';
  readonly unit: Unit;
  readonly queries: readonly Query[];
  /** Columns of 24. */
  readonly width: 4 | 6 | 8 | 12 | 24;
  /** From this value on it is coloured as bad; for `worse: 'below'`, from this value down. */
  readonly limit?: { readonly value: number; readonly worse: 'above' | 'below' };
}

export interface Dashboard {
  /** Name of its file, and its identity in Grafana: moorage-<name>. */
  readonly name: string;
  readonly title: string;
  readonly about: string;
  readonly rows: readonly { readonly title: string; readonly panels: readonly Panel[] }[];
}
