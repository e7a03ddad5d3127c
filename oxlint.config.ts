// Lint rules: strict, typed, no floating promises, limits on complexity and on the length of a file.
import { defineConfig } from 'oxlint';
import { boundaries } from './oxlint.boundaries.ts';
import { errors, typed } from './oxlint.rules.ts';

type MaxLines = ['error', { max: number; skipBlankLines: boolean; skipComments: boolean }];

const lines = (max: number): MaxLines => ['error', { max, skipBlankLines: true, skipComments: true }];

export default defineConfig({
  plugins: ['import', 'typescript'],
  categories: { correctness: 'off' },
  options: { typeAware: true, reportUnusedDisableDirectives: 'error' },
  ignorePatterns: ['node_modules', '.moorage', 'test/fixtures', 'manifests'],
  rules: {
    ...errors,
    complexity: ['error', 12],
    // A circle of imports has no first file to read, and the order in which its modules run depends on the entry point.
    'import/no-cycle': ['error', { ignoreTypes: true }],
    'max-lines': lines(500),
    'no-console': 'error',
    'typescript/ban-ts-comment': ['error', { minimumDescriptionLength: 10 }],
    'typescript/restrict-plus-operands': [
      'error',
      {
        allowAny: false,
        allowBoolean: false,
        allowNullish: false,
        allowNumberAndString: false,
        allowRegExp: false,
      },
    ],
    'typescript/restrict-template-expressions': ['error', { allowNumber: true }],
    'typescript/return-await': ['error', 'error-handling-correctness-only'],
    'typescript/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
  },
  overrides: [
    ...boundaries,
    // A script of the sandbox: the types of what runs there are not known here.
    {
      files: ['**/*.js'],
      rules: {
        ...Object.fromEntries(typed.map((name) => [name, 'off' as const])),
        'typescript/restrict-plus-operands': 'off',
      },
    },
    // Tables of data.
    { files: ['test/**/*.cases.ts'], rules: { 'max-lines': 'off' } },
  ],
});
