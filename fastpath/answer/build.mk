# fastpath/answer: see the lists in the Makefile
