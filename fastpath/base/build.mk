# fastpath/base: see the lists in the Makefile
LIB += fastpath/base/base.c
