// Runs inside the sandbox before the code: Intl, and the methods that depend on a locale. platform.ts answers all of
// it, since the engine has no locale tables.
// eslint-disable-next-line @typescript-eslint/no-unused-expressions -- the value of this script is the function
({ host, give }) => {
  const NativeDate = Date;
  /** Encodes values that JSON would change. */
  const word = (value) => {
    if (value instanceof NativeDate) return { date: +value };
    if (typeof value === 'bigint') return { big: `${value}` };
    if (value === undefined) return { none: true };
    if (typeof value === 'number' && !Number.isFinite(value)) return { number: `${value}` };
    if (typeof value === 'object' && value !== null && typeof value[Symbol.iterator] === 'function')
      return { plain: [...value] };
    return { plain: value };
  };
  const listOf = (locales) =>
    locales === undefined ? null : Array.isArray(locales) ? locales.map((each) => `${each}`) : `${locales}`;
  const ofLocales = (name, locales, options, method, words) =>
    host('intl', name, listOf(locales), options ?? null, method, words.map(word));

  const make = (name, methods, change = (_method, words) => words) => {
    function Formatter(locales, options) {
      if (new.target === undefined) return new Formatter(locales, options);
      ofLocales(name, locales, options, 'resolvedOptions', []);
      for (const method of [...methods, 'resolvedOptions'])
        give(this, {
          [method]: (...words) => ofLocales(name, locales, options, method, change(method, words)),
        });
    }
    give(Formatter, { supportedLocalesOf: (locales) => host('supported', name, listOf(locales)) });
    Object.defineProperty(Formatter, 'name', { value: name, configurable: true });
    Object.defineProperty(Formatter.prototype, Symbol.toStringTag, { value: `Intl.${name}`, configurable: true });
    return Formatter;
  };
  const parts = ['format', 'formatToParts'];
  const ranges = [...parts, 'formatRange', 'formatRangeToParts'];
  const now = (_method, words) =>
    words[0] === undefined ? [NativeDate.now(), ...words.slice(1)] : words.map((each) => +each);
  const number = (_method, words) =>
    words.map((each) => (typeof each === 'bigint' || typeof each === 'string' ? each : Number(each)));
  const segmenter = make('Segmenter', ['segment']);

  class Locale {
    #facts;
    constructor(tag, options) {
      this.#facts = host('locale', `${tag}`, options ?? null);
      for (const [name, value] of Object.entries(this.#facts)) give(this, { [name]: value });
    }
    maximize() {
      return new Locale(this.#facts.maximized);
    }
    minimize() {
      return new Locale(this.#facts.minimized);
    }
    toString() {
      return this.#facts.tag;
    }
  }

  const Intl = {};
  give(Intl, {
    DateTimeFormat: make('DateTimeFormat', ranges, now),
    NumberFormat: make('NumberFormat', ranges, number),
    Collator: make('Collator', ['compare'], (_method, words) => words.map((each) => `${each}`)),
    PluralRules: make('PluralRules', ['select', 'selectRange']),
    RelativeTimeFormat: make('RelativeTimeFormat', parts),
    ListFormat: make('ListFormat', parts),
    DurationFormat: make('DurationFormat', parts),
    DisplayNames: make('DisplayNames', ['of']),
    Segmenter: segmenter,
    Locale,
    getCanonicalLocales: (locales) => host('canonical', listOf(locales)),
    supportedValuesOf: (key) => host('values', `${key}`),
  });
  give(globalThis, { Intl });

  const dated = (method) => ({
    [method](locales, options) {
      return host('date', method, +this, listOf(locales), options ?? null);
    },
  });
  give(NativeDate.prototype, {
    ...dated('toLocaleString'),
    ...dated('toLocaleDateString'),
    ...dated('toLocaleTimeString'),
  });
  const numbered = {
    toLocaleString(locales, options) {
      return new Intl.NumberFormat(locales, options).format(this.valueOf());
    },
  };
  give(Number.prototype, numbered);
  give(BigInt.prototype, numbered);
  give(String.prototype, {
    localeCompare(other, locales, options) {
      return ofLocales('Collator', locales, options, 'compare', [`${this}`, `${other}`]);
    },
    toLocaleUpperCase(locales) {
      return host('case', 'toLocaleUpperCase', `${this}`, listOf(locales));
    },
    toLocaleLowerCase(locales) {
      return host('case', 'toLocaleLowerCase', `${this}`, listOf(locales));
    },
  });
};
