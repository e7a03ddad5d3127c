// Licences that real apps wrote themselves, in their decisive sentences, and what kind each is.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import licenses from 'spdx-license-list/full.js';

interface CustomLicense {
  readonly name: string;
  readonly text: string;
  readonly expect: 'open' | 'custom' | 'restricted';
}

const getText = (id: string): string => licenses[id]?.licenseText ?? '';
const mit = readFileSync(join(import.meta.dirname, '..', '..', 'fixtures', 'static', 'LICENSE'), 'utf8');
const apacheNotice =
  'Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0';

export const customLicenses: readonly CustomLicense[] = [
  { name: 'Elastic License 2.0', text: getText('Elastic-2.0'), expect: 'restricted' },
  {
    name: 'Business Source License with its parameters',
    text: `Licensor: A, Inc.\nLicensed Work: A 1.2\nAdditional Use Grant: You may make use of the Licensed Work, provided that you may not use the Licensed Work for a Document Service.\nChange Date: 2029-03-31\nChange License: Apache License, Version 2.0\n\n${getText('BUSL-1.1')}`,
    expect: 'restricted',
  },
  { name: 'Server Side Public License', text: getText('SSPL-1.0'), expect: 'restricted' },
  {
    name: 'Apache with the Commons Clause',
    text: `"Commons Clause" License Condition v1.0\n\nThe Software is provided to you by the Licensor under the License, as defined below, subject to the following condition. Without limiting other conditions in the License, the grant of rights under the License will not include, and the License does not grant to you, the right to Sell the Software.\n\n${getText('Apache-2.0')}`,
    expect: 'restricted',
  },
  {
    name: "Open WebUI's BSD with a brand",
    text: `${getText('BSD-3-Clause')}\n\n4. Notwithstanding any other provision of this License, and as a material condition of the rights granted herein, licensees are strictly prohibited from altering, removing, obscuring, or replacing any "Open WebUI" branding, including but not limited to the name, logo, or any visual, textual, or symbolic identifiers that distinguish the software and its interfaces, in any deployment or distribution, except as expressly set forth in clause 5.\n`,
    expect: 'custom',
  },
  {
    name: "LobeHub's community licence",
    text: `LobeHub Community License\n\nFrom 1.0, LobeChat is licensed under the LobeHub Community License, based on Apache License 2.0 with the following additional conditions:\n\n1. The commercial usage of LobeChat:\n\na. LobeChat may be utilized commercially, including as a frontend and backend service without modifying the source code.\nb. a commercial license must be obtained from the producer if you want to develop and distribute a derivative work based on LobeChat.\n\n2. As a contributor, you should agree that your contributed code may be used for commercial purposes.\n\n${apacheNotice}\n`,
    expect: 'custom',
  },
  {
    name: "Dify's modified Apache",
    text: `The Dify project is licensed under the Apache License 2.0, with the following additional conditions:\n\na. Multi-tenant SaaS service: Unless explicitly authorized by Dify in writing, you may not use the Dify.AI source code to operate a multi-tenant SaaS service that is similar to the Dify.AI service edition.\nb. LOGO and copyright information: In the process of using Dify, you may not remove or modify the LOGO or copyright information in the Dify console.\n\n${apacheNotice}\n`,
    expect: 'restricted',
  },
  {
    name: "n8n's Sustainable Use License",
    text: 'Sustainable Use License\n\nVersion 1.0\n\nYou may use or modify the software only for your own internal business purposes or for non-commercial or personal use. You may distribute the software or provide it to others only if you do so free of charge for non-commercial purposes.\n',
    expect: 'restricted',
  },
  {
    name: 'Fair Core License',
    text: 'Fair Core License, Version 1.0, ALv2 Future License\n\nA Permitted Purpose is any purpose other than a Competing Use. You must not move, change, disable, or circumvent the license key functionality in the Software.\n',
    expect: 'restricted',
  },
  {
    name: 'Functional Source License',
    text: 'Functional Source License, Version 1.1, Apache 2.0 Future License\n\nA Permitted Purpose is any purpose other than a Competing Use. A Competing Use means making the Software available to others in a commercial product or service that substitutes for the Software.\n',
    expect: 'restricted',
  },
  { name: 'PolyForm Noncommercial', text: getText('PolyForm-Noncommercial-1.0.0'), expect: 'restricted' },
  { name: 'PolyForm Small Business', text: getText('PolyForm-Small-Business-1.0.0'), expect: 'restricted' },
  {
    name: 'PolyForm Shield',
    text: 'PolyForm Shield License 1.0.0\n\nAny purpose is a permitted purpose, except for providing any product that competes with the software or any product the licensor or any of its affiliates provides using the software.\n',
    expect: 'restricted',
  },
  { name: 'CC BY-NC', text: getText('CC-BY-NC-4.0'), expect: 'restricted' },
  { name: 'CC BY-NC by its name', text: 'CC BY-NC-SA 4.0', expect: 'restricted' },
  {
    name: 'all rights reserved',
    text: 'Copyright (c) 2026 Somebody. All rights reserved.\n',
    expect: 'restricted',
  },
  {
    name: 'proprietary',
    text: 'This software is proprietary and confidential. Unauthorized copying of this file, via any medium, is strictly prohibited.\n',
    expect: 'restricted',
  },
  { name: 'the JSON licence', text: getText('JSON'), expect: 'custom' },
  { name: 'Hippocratic License', text: getText('Hippocratic-2.1'), expect: 'custom' },
  {
    name: 'OpenRAIL',
    text: 'CreativeML Open RAIL-M\n\nSection II: Subject to the terms and conditions of this License, each Contributor hereby grants to You a perpetual, worldwide, royalty-free copyright license to reproduce, use and distribute the Model. You agree to use it within the use-based restrictions of Attachment A.\n',
    expect: 'custom',
  },
  {
    name: 'GPL with a condition on brand',
    text: `${getText('GPL-3.0-only')}\n\nAdditional terms under section 7: every copy must retain the original logo of the product on each page of its interface.\n`,
    expect: 'custom',
  },
  {
    name: 'AGPL with a limit',
    text: `${getText('AGPL-3.0-only')}\n\nThis software may not be used for commercial purposes without a licence of its own.\n`,
    expect: 'restricted',
  },
  {
    name: 'MIT outside of one folder',
    text: `Portions of this software are licensed as follows:\n\n* All content that resides under the "ee/" directory of this repository is licensed under the license defined in "ee/LICENSE".\n* All third party components incorporated into the software are licensed under the original license provided by the owner of the applicable component.\n* Content outside of the above mentioned directories is available under the "MIT Expat" license as defined below.\n\n${mit}`,
    expect: 'open',
  },
  {
    name: 'MIT beside notices of what it uses',
    text: `${mit}\n\nThis software contains code of another project:\n\n${getText('BSD-3-Clause')}`,
    expect: 'open',
  },
];
