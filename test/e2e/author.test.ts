// An author's week: from a missing secret to a live app, pushes, a broken commit, a rollback, and the end, with the author key
// alone. Requests go to the app all the time wherever nothing may fail.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { requestSteadily } from '../support/steady-requests.ts';
import {
  appUrl,
  baseUrl,
  deleteApps,
  edit,
  get,
  readApp,
  removeFiles,
  runKubectl,
  submit,
  waitFor,
  writeFiles,
} from '../support/cluster.ts';
