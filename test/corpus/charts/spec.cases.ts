// Vega-Lite and Vega specifications with faults, over which Vega itself would draw on, and with labels that need room.
import type { ChartCase } from './case.ts';

const rows = [
  { month: 'Jan', sales: 28, date: '2026-01-01', year: 2021 },
  { month: 'Feb', sales: 55, date: '2026-02-01', year: 2022 },
  { month: 'Mar', sales: 43, date: '2026-03-01', year: 2023 },
];
const x = { field: 'month', type: 'ordinal', sort: null };
const y = { field: 'sales', type: 'quantitative' };
const bar = { data: { values: rows }, mark: 'bar', encoding: { x, y } };
const bars = (count: number, more: Record<string, unknown> = {}): Record<string, unknown> => ({
  data: { values: Array.from({ length: count }, (_, index) => ({ name: `Category ${index + 1}`, n: index })) },
  mark: 'bar',
  encoding: { x: { field: 'name', type: 'nominal', sort: null, ...more }, y: { field: 'n', type: 'quantitative' } },
});

export const specCases: readonly ChartCase[] = [
  {
    name: 'an unknown field',
    input: { spec: { ...bar, encoding: { x, y: { ...y, field: 'sale' } } } },
    refused: /encoding\.y names the field "sale".*Did you mean "sales"/,
  },
  {
    name: 'an unknown field in a layer',
    input: {
      spec: {
        data: bar.data,
        layer: [
          { mark: 'bar', encoding: { x, y } },
          { mark: 'rule', encoding: { y: { field: 'goal', type: 'quantitative' } } },
        ],
      },
    },
    refused: /layer\[1\]\.encoding\.y names the field "goal"/,
  },
  {
    name: 'an unknown field in a filter',
    input: { spec: { ...bar, transform: [{ filter: 'datum.region == "EU"' }] } },
    refused: /transform\[0\] names the field "region"/,
  },
  {
    name: 'a field that an aggregate dropped',
    input: {
      spec: { ...bar, transform: [{ aggregate: [{ op: 'sum', field: 'sales', as: 'total' }], groupby: ['month'] }] },
    },
    refused: /"sales", which the data has not/,
  },
  {
    name: 'a field that a transform made',
    input: {
      spec: {
        ...bar,
        transform: [{ calculate: 'datum.sales * 2', as: 'double' }],
        encoding: { x, y: { ...y, field: 'double' } },
      },
    },
    texts: ['double', '110'],
  },
  {
    name: 'a dot in a name',
    input: {
      spec: {
        data: { values: [{ k: 'a', 'v.1': 3 }] },
        mark: 'bar',
        encoding: { x: { field: 'k' }, y: { field: 'v.1', type: 'quantitative' } },
      },
    },
    refused: /reads as a path/,
  },
  { name: 'an unknown mark', input: { spec: { ...bar, mark: 'barr' } }, refused: /Did you mean "bar"/ },
  {
    name: 'an unknown property',
    input: { spec: { ...bar, encodings: {} } },
    refused: /unknown property "encodings".*"encoding"/,
  },
  {
    name: 'an unknown property of an axis',
    input: { spec: { ...bar, encoding: { x: { ...x, axis: { labelAngel: 0 } }, y } } },
    refused: /"labelAngel".*"labelAngle"/,
  },
  {
    name: 'an unknown type',
    input: { spec: { ...bar, encoding: { x, y: { ...y, type: 'number' } } } },
    refused: /encoding\.y\.type is "number"/,
  },
  {
    name: 'a selection of Vega-Lite 4',
    input: { spec: { ...bar, selection: { pick: { type: 'interval' } } } },
    refused: /unknown property "selection"/,
  },
  { name: 'no rows', input: { spec: { ...bar, data: { values: [] } } }, refused: /has no rows/ },
  { name: 'no data', input: { spec: { mark: 'bar', encoding: { x, y } } }, refused: /has no data/ },
  {
    name: 'data of a name',
    input: { spec: { ...bar, data: { name: 'table' } } },
    refused: /"table", which is not in spec\.datasets/,
  },
  {
    name: 'data by URL',
    input: { spec: { ...bar, data: { url: 'data/cars.json' } } },
    refused: /spec\.data\.url refers to data\/cars\.json, which is not loaded/,
  },
  {
    name: 'all values null',
    input: { spec: { ...bar, data: { values: rows.map((row) => ({ ...row, sales: null })) } } },
    refused: /has no value in any row/,
  },
  {
    name: 'words on a scale of numbers',
    input: { spec: { ...bar, encoding: { x, y: { field: 'month', type: 'quantitative' } } } },
    refused: /no value of "month" is a number/,
  },
  {
    name: 'some words on a scale of numbers',
    input: { spec: { ...bar, data: { values: [...rows, { month: 'Apr', sales: 'n/a' }] } } },
    warned: /1 of 4 values of "sales" are not numbers/,
  },
  {
    name: 'years as dates',
    input: { spec: { ...bar, mark: 'line', encoding: { x: { field: 'year', type: 'temporal' }, y } } },
    refused: /milliseconds after 1970/,
  },
  {
    name: 'a filter that leaves no row',
    input: { spec: { ...bar, transform: [{ filter: 'datum.sales > 1000' }] } },
    refused: /would be empty/,
  },
  {
    name: 'a channel that a mark has not',
    input: { spec: { ...bar, encoding: { x, y, shape: { field: 'month' } } } },
    refused: /would be another one: shape dropped/,
  },
  {
    name: 'forty names on a narrow chart',
    input: { spec: { ...bars(40, { axis: { labelAngle: 0 } }), width: 300 } },
    warned: /Some labels of the x axis are left out/,
  },
  {
    name: 'names that collide are turned',
    input: { spec: { ...bars(14), width: 420, config: { axisX: { labelAngle: 0 } } } },
    texts: ['Category 1', 'Category 14'],
  },
  {
    name: 'a Vega specification with a fault',
    input: {
      spec: {
        $schema: 'https://vega.github.io/schema/vega/v6.json',
        width: 50,
        height: 50,
        data: [{ name: 't', values: [] }],
        marks: [{ type: 'rect', from: { data: 't' }, encode: { enter: { x: { field: 'x' } } } }],
      },
    },
    refused: /would be empty/,
  },
];
