// What keeps a submission from being made: the person's command or the machine, not the repository.

/** Ends `npm run submit` with exit code 2. The message is for a person, and says what to do. */
export class Fault extends Error {
  override readonly name = 'Fault';
}
