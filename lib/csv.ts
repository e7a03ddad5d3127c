// CSV as RFC 4180 has it, safe to open in a spreadsheet.

export type CsvValue = string | number | boolean | Date | object | null | undefined;

/** A line with its end. */
export function csvLine(values: readonly CsvValue[]): string {
  return `${values.map(csvField).join(',')}\r\n`;
}

function csvField(value: CsvValue): string {
  if (value === null || value === undefined) return '';
  const text =
    value instanceof Date ? value.toISOString() : typeof value === 'object' ? JSON.stringify(value) : String(value);
  // A spreadsheet takes what begins so for a formula.
  const safe = /^[=+\-@\t\r]/.test(text) && typeof value === 'string' && !/^-?\d/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
