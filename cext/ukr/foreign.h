/* Call of a kernel of another library through our contract. */
void DT(ukr_run_foreign)(const DT(ukr_row) * row, const DT(ukr_call) * call);
