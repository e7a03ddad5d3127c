// Leaves out the fields that have no value: in status and manifests an absent field and an undefined one are not the
// same.

/** The fields of `Fields` that may be undefined become optional. */
export type Present<Fields> = { [Key in keyof Fields as undefined extends Fields[Key] ? never : Key]: Fields[Key] } & {
  [Key in keyof Fields as undefined extends Fields[Key] ? Key : never]?: Exclude<Fields[Key], undefined>;
};

/** A copy without the fields that are undefined. */
export function present<Fields extends object>(fields: Fields): Present<Fields> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Present<Fields>;
}
