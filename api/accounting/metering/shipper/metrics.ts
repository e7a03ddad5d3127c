// Metrics of the shipper.
import { Counter, Gauge, type Registry } from 'prom-client';

export interface ShipperMetrics {
  readonly shipped: Counter;
  readonly dropped: Counter;
  readonly unreadable: Counter;
  readonly waiting: Gauge;
}

export function shipperMetrics(registry: Registry): ShipperMetrics {
  const registers = [registry];
  return {
    shipped: new Counter({
      name: 'moorage_shipper_records_total',
      help: 'Records of the access log that the receiver has acknowledged.',
      registers,
    }),
    dropped: new Counter({
      name: 'moorage_shipper_dropped_total',
      help: 'Records that were dropped because too many waited; the receiver reports them as lost.',
      registers,
    }),
    unreadable: new Counter({
      name: 'moorage_shipper_unreadable_total',
      help: 'Lines of the access log that are no records.',
      registers,
    }),
    waiting: new Gauge({
      name: 'moorage_shipper_waiting_bytes',
      help: 'Bytes of the access log that are not sent yet.',
      registers,
    }),
  };
}
