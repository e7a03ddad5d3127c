// What the rules apply to, and the marks by which the two tables speak to each other.

/** The bridge whose ports are pods. */
export interface Scope {
  /** Name of both tables (families inet and bridge). */
  table: string;
  /** Name of the bridge. */
  bridge: string;
  /** CIDR of the pods' addresses. */
  podCidr: string;
}

/** Name of the tables on a node. */
export const TABLE = 'moorage-policy';

/** Set on a packet that the policy table has judged: a frame bridged to a pod without it has bypassed the rules. */
export const SEEN = '0x10000000';

/** Set on a packet whose source address is the one that its bridge port was given. */
export const SOURCE_PROVED = '0x20000000';
