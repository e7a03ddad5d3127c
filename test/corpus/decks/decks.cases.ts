// Outlines as agents write them.
import { pictureUrl, type DeckCase } from './case.ts';

const fence = '```';

export const deckCases: readonly DeckCase[] = [
  {
    name: 'bullets, columns, table and quote',
    outline: `# Container **shipping** & trade
From 1956 to today

## Where it began
- In 1956 the *Ideal X* sailed with 58 containers, see [more](https://example.com/a?b=1&c=2)
  - Loading fell to < $0.16 a ton
    - from $5.83
- ~~Sacks~~ boxes

Notes: Speak slowly.

## Against each other
### Before
- Weeks in port
- Hundreds of dockers
### After
- Hours in port
- A crane and its driver

# The figures
What the ports say

## By decade
| Decade | TEU | Share |
|:---|--:|:-:|
| 1970s | 2,400 | 3 % |
| 1990s | 28,700 | 38 % |

## A word
> I don't have much nostalgia for anything that loses money.
> — Malcom McLean
`,
    titles: [
      'Container shipping & trade',
      'Where it began',
      'Against each other',
      'The figures',
      'By decade',
      'A word',
    ],
    texts: ['Loading fell to < $0.16 a ton', 'Sacks boxes', '28,700', '— Malcom McLean'],
    notes: ['Speak slowly.'],
  },
  {
    name: 'headings of the first level only',
    outline: `# Harbour safety
- Helmets on the quay
- No walking under loads

# Before you enter
1. Sign in at the gate
2. Put on your vest
3. Wait for the guide

# In an emergency
- Call 112
- Go to the **meeting point**
`,
    titles: ['Harbour safety', 'Harbour safety', 'Before you enter', 'In an emergency'],
    texts: ['Helmets on the quay', 'Put on your vest', 'Go to the meeting point'],
    starts: [1],
  },
  {
    name: 'code stays code',
    outline: `# Reading ships
## In Python
Ask the list, then count:

${fence}python
def count(ships):
    # not a heading, **not bold**, _not italic_
    total = {}
    for ship in ships:
        if ship["flag"] != "":
            total[ship["flag"]] = total.get(ship["flag"], 0) + 1

    return total  # <b>no HTML</b> & "quotes"
${fence}

## In the shell
${fence}
$ curl -s https://ships.test/list | jq '.[] | select(.flag == "PA")'
- this is no bullet
1. nor a number
\tindented by a tab
${fence}
- Use \`jq -r\` for **plain** text
`,
    titles: ['Reading ships', 'In Python', 'In the shell'],
    texts: [
      '    # not a heading, **not bold**, _not italic_',
      '- this is no bullet',
      '    indented by a tab',
      'Use jq -r for plain text',
    ],
  },
  {
    name: 'numbered lists',
    outline: `# Docking
## Steps
1. Call the pilot
2. Reduce speed
   - below 6 knots
   - tugs stand by
3. Throw the lines

## Further steps
4. Make fast
5. Lower the gangway

## Two lists
1. First of the first
2. Second of the first

Then begin again:

1. First of the second
2. Second of the second
   1. inner one
   2. inner two
`,
    titles: ['Docking', 'Steps', 'Further steps', 'Two lists'],
    texts: ['Call the pilot', 'Make fast', 'inner two'],
    starts: [1, 4, 1, 1, 1],
  },
  {
    name: 'images, charts and diagrams',
    outline: `# Pictures
## A photograph
![A ship at the quay](${pictureUrl})

## With text beside it
- The ship is 400 m long
- It carries 24,000 containers
- A crew of 23

![A ship](${pictureUrl})

## A chart
${fence}chart
{"type": "bar", "labels": ["2024", "2025", "2026"], "series": {"in": [4, 6, 7], "out": [3, 5, 8]}, "title": "Ships"}
${fence}

## A Vega-Lite chart and what it says
- Growth is steady
${fence}vega-lite
{"data": {"values": [{"y": 1, "v": 2}, {"y": 2, "v": 4}, {"y": 3, "v": 7}]}, "mark": "line", "encoding": {"x": {"field": "y", "type": "quantitative"}, "y": {"field": "v", "type": "quantitative"}}}
${fence}

## Diagrams
### Graphviz
${fence}dot
digraph { Sea -> Quay -> Yard -> Gate }
${fence}
### D2
${fence}d2
ship -> crane -> truck
${fence}
`,
    titles: [
      'Pictures',
      'A photograph',
      'With text beside it',
      'A chart',
      'A Vega-Lite chart and what it says',
      'Diagrams',
    ],
    texts: ['A crew of 23', 'Growth is steady', 'D2'],
    pictures: 6,
  },
  {
    name: 'too much for a slide',
    outline: `# Much
## Many bullets
${Array.from({ length: 22 }, (_, index) => `- Point ${index + 1}: ${'the cranes lift, the trucks drive, the ships wait '.repeat(2).trim()}`).join('\n')}

## A long paragraph
${Array.from({ length: 30 }, (_, index) => `Sentence ${index + 1} of the report says that nothing was lost on the way.`).join(' ')}

## A long table
| Berth | Ship | Remark |
|---|---|---|
${Array.from({ length: 28 }, (_, index) => `| ${index + 1} | Ship ${index + 1} | ${index % 5 === 0 ? 'waits for the tide and for a pilot who comes from the other side of the bay' : 'on time'} |`).join('\n')}

## Long code
${fence}
${Array.from({ length: 70 }, (_, index) => `line ${index + 1}: call(${'argument, '.repeat(index % 9)}end)`).join('\n')}
${fence}

## ${'A title that says a great deal about what is on its slide '.repeat(3).trim()}
- Short
`,
    texts: [
      'Point 22: the cranes lift, the trucks drive, the ships wait the cranes lift, the trucks drive, the ships wait',
      'Ship 28',
      'line 70: call(argument, argument, argument, argument, argument, argument, end)',
    ],
  },
  {
    name: 'a numbered outline in plain text',
    outline: `Port development plan

1. Introduction
   1.1 Why the port must grow
   1.2 What has been tried
2. Options
   2.1 Dredging
   2.2 A new terminal
3. Decision
   3.1 Costs
   3.2 Timetable
`,
    titles: ['Port development plan', 'Introduction', 'Options', 'Decision'],
    texts: ['Why the port must grow', 'A new terminal', 'Timetable'],
  },
  {
    name: 'slides by their number, in plain text',
    outline: `Title: Night shifts
Slide 1: Why at night
- Tides do not wait
- Fees are lower
Slide 2: Who works
- Crews of six
Speaker notes: Ask who has done one.
Slide 3: Questions
`,
    titles: ['Night shifts', 'Why at night', 'Who works', 'Questions'],
    texts: ['Tides do not wait', 'Crews of six'],
  },
  {
    name: 'what slides cannot keep',
    outline: `---
marp: true
theme: gaia
---
# Everything
<!-- _class: lead -->

## HTML and formulas
<div align="center">Centred text</div>

Energy is $E = mc^2$, and H<sub>2</sub>O is water.[^1]

<video src="film.mp4"></video>

[^1]: From a book.

---

Rules begin slides

- as in Marp
- [ ] an open task
- [x] a done one

![The film](https://www.youtube.com/watch?v=abc)
`,
    titles: ['Everything', 'HTML and formulas', 'Rules begin slides'],
    texts: ['Centred text', 'as in Marp', '☐ an open task', '✓ a done one', 'The film'],
    warned: /front matter.*HTML comments.*<video>.*HTML tags.*Videos.*Footnotes.*Formulas/s,
  },
  {
    name: 'many scripts',
    outline: `# 集装箱运输简史
从1956年到今天

## 开始
- 1956年，五十八个集装箱从纽瓦克运往休斯敦
- 装卸费用从每吨5.83美元降到0.16美元

## العربية
- بدأت حركة الحاويات في عام ١٩٥٦
- ٥٨ حاوية على متن السفينة

## हिन्दी और ไทย
- कंटेनर जहाज़ 1956 में चला
- เรือคอนเทนเนอร์ลำแรกออกเดินทางในปี 1956
- Ship 🚢 and train 🚂
`,
    titles: ['集装箱运输简史', '开始', 'العربية', 'हिन्दी और ไทย'],
    texts: ['装卸费用从每吨5.83美元降到0.16美元', 'Ship 🚢 and train 🚂'],
  },
  { name: 'just words', outline: 'just words', refused: /no headings/ },
  {
    name: 'an image that is not there',
    outline: '# T\n## S\n![x](https://pictures.test/none.png)',
    titles: ['T', 'S'],
    texts: ['[Picture not available: x]'],
    warned: /Slide 1 .*placeholder/,
  },
  {
    name: 'a chart that would be empty',
    outline: `# T\n## S\n${fence}chart\n{"type": "bar", "labels": ["a"], "values": [null]}\n${fence}`,
    refused: /Slide 1 \("S"\).*has no number/,
  },
  {
    name: 'a diagram with a fault',
    outline: `# T\n## S\n${fence}dot\ndigraph { a -> \n${fence}`,
    refused: /Slide 1 \("S"\).*Graphviz cannot parse/,
  },
];
