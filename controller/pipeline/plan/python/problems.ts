// Explains to the author what a Python app lacks, or why it should not be started.
import type { Problem } from '../recipe.ts';
import type { PythonPackages } from './packages/find.ts';
import type { PythonStart } from './start/find.ts';

/** Returns the reason why nothing can be started unless the author specifies a command; undefined if something can. */
export function findMisfit(packages: PythonPackages | undefined, start: PythonStart | undefined): Problem | undefined {
  if (start === undefined) return createNoStartProblem(packages?.file);
  if (start.other !== undefined) return createSeveralProgramsProblem(start, start.other);
  return start.bot !== undefined && start.port === undefined ? createNoServerProblem(start.bot) : undefined;
}

export function createNoPackagesProblem(framework: string): Problem {
  return {
    problem: {
      rule: 'plan/no-packages',
      severity: 'error',
      message: `This is a ${framework} app, but no file lists its dependencies, including ${framework}.`,
      fix: `Add requirements.txt with one line for each package that the code imports, such as "${framework.toLowerCase()}" ("pip freeze" in a working environment lists them), or a pyproject.toml with its dependencies.`,
    },
  };
}

function createSeveralProgramsProblem(one: PythonStart, other: PythonStart): Problem {
  return {
    problem: {
      rule: 'plan/several-programs',
      severity: 'error',
      message: `The app has two programs: ${one.because} ${other.because} Started alone, either is half of it.`,
      fix: 'Set run.command in moorage.yaml to what starts the app, such as ["sh", "-c", "uvicorn api:app --port 9000 & exec streamlit run ui.py --server.port $PORT"], or add a Dockerfile.',
    },
  };
}

function createNoServerProblem(bot: string): Problem {
  return {
    problem: {
      rule: 'plan/no-server',
      severity: 'error',
      message: `This is a bot (what it starts imports ${bot}): it answers no HTTP, so there is nothing to open at an address.`,
      fix: 'Only apps that answer HTTP are hosted. If it has a page, set run.command in moorage.yaml to what serves it on $PORT.',
    },
  };
}

function createNoStartProblem(file = 'requirements.txt'): Problem {
  return {
    problem: {
      rule: 'plan/no-start',
      severity: 'error',
      file,
      message: 'The repository has Python files, but nothing defines how to start the app.',
      fix: 'Add a Procfile with a line like "web: gunicorn --bind 0.0.0.0:$PORT app:app", or set run.command in moorage.yaml. FastAPI, Flask, Django, Streamlit, Gradio, Chainlit, Dash, NiceGUI, Panel and similar apps in main.py or app.py, and Reflex apps by their rxconfig.py, are detected automatically.',
    },
  };
}
