// The plain form of a chart, as agents write it: types, series, long and many labels, scripts, numbers and dates.
import type { ChartCase } from './case.ts';

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun'];
const countries = [
  'Bosnia and Herzegovina',
  'Democratic Republic of the Congo',
  'Saint Vincent and the Grenadines',
  'United Kingdom of Great Britain and Northern Ireland',
  'Lao People’s Democratic Republic',
];

export const plainCases: readonly ChartCase[] = [
  {
    name: 'bar',
    input: { type: 'bar', labels: months, values: [3, 7, 4, 9, 6, 8], title: 'Ships per month', y_label: 'ships' },
    texts: ['Jan', 'Jun', 'Ships per month', 'ships'],
  },
  {
    name: 'line of two series',
    input: {
      type: 'line',
      labels: months,
      series: { 2025: [3, 7, 4, 9, 6, 8], 2026: [4, 6, 7, null, 9, 11] },
      y_label: 'TEU',
    },
    texts: ['2025', '2026', 'Jun'],
  },
  {
    name: 'grouped bars, as a list of series',
    input: {
      type: 'column',
      labels: ['Hamburg', 'Rotterdam', 'Antwerp'],
      series: [
        { name: 'Import', values: [4.1, 7.2, 6.3] },
        { name: 'Export', values: [3.9, 6.4, 6.6] },
      ],
      title: 'Containers',
    },
    texts: ['Hamburg', 'Import', 'Export'],
  },
  {
    name: 'stacked bars with negative values',
    input: {
      type: 'stacked_bar',
      labels: ['Q1', 'Q2', 'Q3', 'Q4'],
      series: { income: [12, 14, 9, 17], cost: [-8, -9, -11, -10] },
    },
    texts: ['Q1', 'income', 'cost'],
  },
  {
    name: 'area over dates',
    input: {
      type: 'area',
      labels: ['2026-01-01', '2026-02-01', '2026-03-01', '2026-04-01', '2026-05-01'],
      series: { night: [1, 2, 3, 2, 1], day: [4, 6, 9, 7, 5] },
    },
    texts: ['night', 'day', 'February'],
  },
  {
    name: 'scatter of points',
    input: {
      type: 'scatter',
      values: [
        [1, 2.5],
        [2, 3.9],
        [3.5, 4.1],
        [6, 8.2],
      ],
      x_label: 'length in m',
      y_label: 'speed in kn',
    },
    texts: ['length in m', 'speed in kn'],
  },
  {
    name: 'pie with shares',
    input: {
      type: 'pie',
      labels: ['Rent', 'Food', 'Travel', 'Music', 'Tea'],
      values: [900, 420, 180, 60, 4],
      title: 'Budget',
    },
    texts: ['Rent', '57.5 %', '0.3 %'],
  },
  { name: 'donut', input: { type: 'doughnut', labels: ['yes', 'no'], values: [62, 38] }, texts: ['yes', '38 %'] },
  {
    name: 'histogram',
    input: { type: 'histogram', values: [1, 2, 2, 3, 3, 3, 4, 4, 5, 8, 9, 9.5], x_label: 'days' },
    texts: ['days', 'Count'],
  },
  {
    name: 'long names turn the bars',
    input: { type: 'bar', labels: countries, values: [3.2, 102.3, 0.1, 68.3, 7.6] },
    texts: countries.slice(0, 3),
  },
  {
    name: 'names of many words are wrapped',
    input: {
      type: 'horizontal_bar',
      labels: [
        'How satisfied are you with the waiting time at the harbour gate on weekdays?',
        'Would you recommend the night shift to a friend or a colleague?',
        'Short one',
      ],
      values: [71, 44, 90],
      x_label: 'per cent',
    },
    texts: ['How satisfied are you', 'weekdays?', 'per cent'],
  },
  {
    name: 'sixty categories',
    input: {
      type: 'bar',
      labels: Array.from({ length: 60 }, (_, index) => `Berth ${index + 1}`),
      values: Array.from({ length: 60 }, (_, index) => (index * 37) % 23),
    },
    texts: ['Berth 1', 'Berth 60'],
  },
  {
    name: 'line of many categories',
    input: {
      type: 'line',
      labels: Array.from({ length: 45 }, (_, index) => `week ${index + 1}`),
      values: Array.from({ length: 45 }, (_, index) => Math.round(100 * Math.sin(index / 5))),
    },
    texts: ['week 1', 'week 45'],
  },
  { name: 'negative numbers', input: { labels: ['a', 'b', 'c', 'd'], values: [-3.5, 2, -0.25, 4] }, texts: ['a', 'd'] },
  {
    name: 'big numbers',
    input: {
      type: 'bar',
      labels: ['China', 'India', 'Nigeria'],
      values: [1409670000, 1438070000, 227880000],
      title: 'Inhabitants',
    },
    texts: ['Nigeria', '1,400,000,000'],
  },
  {
    name: 'tiny numbers',
    input: { type: 'line', labels: ['a', 'b', 'c'], values: [0.00012, 0.00034, 0.00009] },
    texts: ['a', '0.0003'],
  },
  {
    name: 'Chinese',
    input: {
      type: 'bar',
      labels: ['上海港', '新加坡港', '宁波舟山港', '深圳港'],
      values: [49.2, 39, 35.3, 29.9],
      title: '2023年集装箱吞吐量',
      y_label: '百万标准箱',
    },
    texts: ['上海港', '宁波舟山港', '2023年集装箱吞吐量'],
  },
  {
    name: 'Arabic',
    input: {
      type: 'bar',
      labels: ['جدة', 'دبي', 'الدار البيضاء'],
      values: [5.5, 14.5, 3.1],
      title: 'حركة الحاويات في الموانئ',
    },
    texts: ['جدة', 'حركة الحاويات في الموانئ'],
  },
  {
    name: 'Devanagari',
    input: { type: 'bar', labels: ['मुंबई', 'चेन्नई', 'विशाखापत्तनम'], values: [6.4, 1.5, 0.6], title: 'बंदरगाह यातायात' },
    texts: ['मुंबई', 'विशाखापत्तनम', 'बंदरगाह यातायात'],
  },
  {
    name: 'Thai',
    input: { type: 'line', labels: ['มกราคม', 'กุมภาพันธ์', 'มีนาคม', 'เมษายน'], values: [4, 7, 5, 9], title: 'จำนวนเรือ' },
    texts: ['กุมภาพันธ์', 'จำนวนเรือ'],
  },
  {
    name: 'emoji',
    input: { type: 'bar', labels: ['🚢 ship', '🚂 train', '✈️ plane'], values: [5, 3, 2], title: 'Freight 📦' },
    texts: ['ship', 'Freight'],
  },
  {
    name: 'long title and axis titles',
    input: {
      type: 'line',
      labels: months,
      values: [3, 7, 4, 9, 6, 8],
      title:
        'Number of ships that called at the port in the first half of the year, without barges, tugs and pilot boats, by month of arrival',
      y_label: 'ships that called, without barges',
    },
    texts: ['Number of ships', 'month of arrival'],
  },
  {
    name: 'Chart.js in spec',
    input: {
      spec: {
        type: 'bar',
        data: {
          labels: ['x', 'y'],
          datasets: [
            { label: 'a', data: [1, 2] },
            { label: 'b', data: [2, 1] },
          ],
        },
      },
    },
    texts: ['x', 'a', 'b'],
  },
  {
    name: 'rows of label and value',
    input: {
      values: [
        { label: 'p', value: 3 },
        { label: 'q', value: 4 },
      ],
    },
    texts: ['p', 'q'],
  },
  {
    name: 'a value too few',
    input: { type: 'bar', labels: ['a', 'b', 'c'], values: [1, 2] },
    refused: /has 2 values, and labels has 3/,
  },
  {
    name: 'a series too long',
    input: { type: 'line', labels: ['a', 'b'], series: { one: [1, 2], two: [1, 2, 3] } },
    refused: /has 3 values, and labels has 2/,
  },
  {
    name: 'words for numbers',
    input: { type: 'bar', labels: ['a', 'b'], values: ['12 EUR', '1,300'] },
    refused: /values/,
  },
  { name: 'no values', input: { type: 'bar', labels: ['a', 'b'] }, refused: /is missing, and so is series/ },
  { name: 'an unknown type', input: { type: 'sunburst', labels: ['a'], values: [1] }, refused: /type/ },
  {
    name: 'a negative slice',
    input: { type: 'pie', labels: ['a', 'b'], values: [3, -1] },
    refused: /cannot show negative/,
  },
  { name: 'only nulls', input: { type: 'line', labels: ['a', 'b'], values: [null, null] }, refused: /has no number/ },
  { name: 'a name twice', input: { type: 'bar', labels: ['a', 'a'], values: [1, 2] }, refused: /twice/ },
];
