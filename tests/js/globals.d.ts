/** What pages offer to tests and to curious readers. */
interface Window {
  regard: any;
}
