/* nosymbol.c - a shared object that is no plugin. */
int hf_test_nothing(void);

int hf_test_nothing(void)
{
    return 0;
}
