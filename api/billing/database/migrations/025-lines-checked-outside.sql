-- Lines of statements are compared with the ledger by one program outside of the database: api/receipts/verify/statement-lines.ts.

drop function revenue.audit();
