// What the rest of the API uses of this room: what authors earn, and how they read and dispute it.
export { bindAuthor, provenStatement, type StatementView } from './statement.ts';
export { authorView } from './author-endpoints.ts';
export { priceListView, type PriceListView } from './prices.ts';
export { readRevenueSettings, type Revenue, type RevenueSettings, startRevenue } from './start-revenue.ts';
